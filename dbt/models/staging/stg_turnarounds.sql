select
    tailnum,
    airport,
    arrived_with as arrived_flight_id,
    departed_with as departed_flight_id,
    next_airport,
    arrived_at,
    departed_at,
    ground_minutes
from {{ source('serving', 'aircraft_turnarounds') }}
