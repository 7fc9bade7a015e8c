select
    day,
    sum(sales) as sales,
    sum(revenue_cents) as revenue_cents
from {{ source('serving', 'sales_by_day') }}
group by day
