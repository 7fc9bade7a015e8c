-- Orders and revenue of the mart against the hourly view, which nothing else here reads.
with days as (select coalesce(sum(orders), 0) as orders, coalesce(sum(revenue_cents), 0) as cents from {{ ref('market_days') }}),

hours as (
    select coalesce(sum(orders), 0) as orders, coalesce(sum(revenue_cents), 0) as cents
    from {{ source('serving', 'orders_by_hour') }}
)

select days.orders as of_days, hours.orders as of_hours, days.cents as cents_of_days, hours.cents as cents_of_hours
from days
cross join hours
where days.orders <> hours.orders or days.cents <> hours.cents
