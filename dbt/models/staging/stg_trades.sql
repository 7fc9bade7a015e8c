select
    comp_id,
    status,
    colour,
    venue,
    order_id,
    execution_id,
    waited_until as traded_at,
    (unix_micros(waited_until) - unix_micros(waited_from)) / 1e6 as waited_seconds
from {{ source('serving', 'trades') }}
where status = 'traded'
