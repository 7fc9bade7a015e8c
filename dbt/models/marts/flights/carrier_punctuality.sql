select
    carrier,
    max(carrier_name) as carrier_name,
    count(*) as days,
    sum(departures) as departures,
    sum(mean_delay_minutes * departures) / sum(departures) as mean_delay_minutes,
    max(max_delay_minutes) as max_delay_minutes,
    avg(case when mean_delay_minutes <= 15 then 1.0 else 0.0 end) as punctual_days_share
from {{ ref('stg_carrier_days') }}
group by carrier
