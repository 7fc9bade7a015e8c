select
    carrier,
    coalesce(carrier_name, carrier) as carrier_name,
    day as departed_on,
    departures,
    mean_delay as mean_delay_minutes,
    max_delay as max_delay_minutes
from {{ source('serving', 'delay_by_carrier_day') }}
