with ordered as (
    select
        ordered_on as day,
        sum(orders) as orders,
        sum(revenue_cents) as revenue_cents,
        count(*) as stores
    from {{ ref('stg_store_days') }}
    group by ordered_on
),

traded as (
    select
        to_date(traded_at) as day,
        count(*) as trades,
        avg(waited_seconds) as mean_wait_seconds
    from {{ ref('stg_trades') }}
    group by to_date(traded_at)
)

select
    day,
    coalesce(orders, 0) as orders,
    coalesce(revenue_cents, 0) as revenue_cents,
    coalesce(stores, 0) as stores,
    coalesce(trades, 0) as trades,
    mean_wait_seconds
from ordered
full outer join traded using (day)
