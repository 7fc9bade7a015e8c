select
    origin as airport,
    to_date(hour) as departed_on,
    sum(departures) as departures,
    sum(cancellations) as cancellations
from {{ source('serving', 'departures_by_airport_hour') }}
group by origin, to_date(hour)
