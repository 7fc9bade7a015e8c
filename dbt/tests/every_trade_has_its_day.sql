-- What the two market marts say of trades must be the same number.
select by_day.trades as by_day, by_venue.trades as by_venue
from (select coalesce(sum(trades), 0) as trades from {{ ref('market_days') }}) as by_day
cross join (select coalesce(sum(trades), 0) as trades from {{ ref('venue_trades') }}) as by_venue
where by_day.trades <> by_venue.trades
