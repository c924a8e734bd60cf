"""The process that draws: a request per line on standard input, an answer per line on standard output.

It runs as a script of its own and imports nothing of Beholder. The library that draws holds a JavaScript engine, which
ends its process when memory is short; what then ends is this one.
"""

import base64
import json
import os
import sys
from typing import Any

MEMORY = 4 << 30  # bytes of data that drawing may take; a chart takes a few hundred million


def answer(request: dict[str, Any]) -> str:
    """The chart as SVG, or as PNG in base64; or the library as one script."""
    import vl_convert

    kind, spec = request["kind"], request["spec"]
    if kind == "library":
        return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;"))
    if kind == "svg":
        return str(vl_convert.vegalite_to_svg(spec, allowed_base_urls=[]))
    return base64.b64encode(vl_convert.vegalite_to_png(spec, scale=3, allowed_base_urls=[])).decode()


def main() -> None:
    """Answer until there is no more request."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    except (ImportError, ValueError, OSError):
        pass  # no such limit here, or a lower one is set already
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the library prints is no answer
    for line in sys.stdin.buffer:
        try:
            reply = {"drawn": answer(json.loads(line))}
        except Exception as error:
            reply = {"error": (str(error).strip().splitlines() or [type(error).__name__])[0][:300]}
        replies.write(json.dumps(reply).encode() + b"\n")
        replies.flush()


if __name__ == "__main__":
    main()
