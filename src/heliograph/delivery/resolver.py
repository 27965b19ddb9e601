"""The machine's own name resolution, behind the port that the egress guard asks."""

import asyncio
import socket
from collections.abc import Sequence
from typing import final


@final
class SystemResolver:
    """Asks the operating system, off the event loop."""

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        """Return the addresses of a host in the order the system prefers.

        Raises:
            OSError: There are none, or no name server answered.
        """
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(
                host, port, family=socket.AF_UNSPEC, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP
            )
        except UnicodeError:  # a label that no name server could be asked for
            raise OSError("the host name cannot be asked for") from None
        return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))
