"""Programs that kill themselves just before or after a call."""

import textwrap

KILLING = """
    import os, signal, sys
    {imports}

    class Around:
        def __init__(self, place, name, moment):
            self.place, self.name, self.moment, self.real = place, name, moment, getattr(place, name)

        def install(self):
            def killed(*arguments, **named):
                if not is_at_work:
                    return self.real(*arguments, **named)
                if self.moment == "after":
                    self.real(*arguments, **named)
                os.kill(os.getpid(), signal.SIGKILL)
            setattr(self.place, self.name, killed)

    is_at_work = {is_at_work}
    {work}
    {point}.install()
    sys.exit({main})
"""


def program(imports: str, point: str, main: str, work: str = "") -> str:
    """Runs `main` until the `point`, an Around. work: code that sets is_at_work; without it every call counts."""
    filled = textwrap.dedent(KILLING).replace("{is_at_work}", str(not work)).replace("{main}", main)
    for name, text in (("{imports}", imports), ("{work}", work)):
        filled = filled.replace(name, textwrap.dedent(text))
    return filled.replace("{point}", point)
