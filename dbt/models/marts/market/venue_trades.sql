select
    venue,
    colour,
    count(*) as trades,
    avg(waited_seconds) as mean_wait_seconds,
    max(waited_seconds) as longest_wait_seconds
from {{ ref('stg_trades') }}
group by venue, colour
