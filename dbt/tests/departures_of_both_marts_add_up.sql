-- The same departures counted by two views. They can only be equal to the last one if both were read at the same
-- position of the log, which is what the pin is for.
with by_carrier as (select coalesce(sum(departures), 0) as departures from {{ ref('carrier_punctuality') }}),

by_airport as (select coalesce(sum(departures), 0) as departures from {{ ref('stg_airport_days') }})

select by_carrier.departures as by_carrier, by_airport.departures as by_airport
from by_carrier
cross join by_airport
where by_carrier.departures <> by_airport.departures
