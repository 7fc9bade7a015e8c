select
    airport,
    count(*) as turnarounds,
    count(distinct tailnum) as aircraft,
    min(ground_minutes) as shortest_minutes,
    percentile(ground_minutes, 0.5) as median_minutes,
    avg(case when ground_minutes <= 24 * 60 then 1.0 else 0.0 end) as within_a_day_share
from {{ ref('stg_turnarounds') }}
group by airport
