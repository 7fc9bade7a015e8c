select
    store_id,
    day as ordered_on,
    orders,
    revenue_cents
from {{ source('serving', 'orders_by_day') }}
