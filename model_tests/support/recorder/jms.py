"""A real JMS provider for tests: Artemis, which a Java program embeds."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from model_tests.support.maven import compiled

__all__ = ["broker_xml", "java"]

_SOON: Final = 90
_SMALL: Final = MappingProxyType({"journal-file-size": "1M"})


def broker_xml(
    folder: Path, port: int, queues: list[str], *, protocols: str = "CORE", more: Mapping[str, object] = _SMALL
) -> Path:
    """The configuration of a broker that listens at ``port`` and keeps its data in ``folder``; ``more`` settings."""
    settings = "".join(f"<{name}>{value}</{name}>" for name, value in more.items())
    listed = "".join(f'<address name="{name}"><anycast><queue name="{name}"/></anycast></address>' for name in queues)
    file = folder / "broker.xml"
    file.write_text(
        f"""<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core"><name>test</name>
 <persistence-enabled>true</persistence-enabled><security-enabled>false</security-enabled>
 <jmx-management-enabled>false</jmx-management-enabled><journal-type>NIO</journal-type>
 <journal-pool-files>10</journal-pool-files>{settings}
 <journal-directory>{folder}/journal</journal-directory><bindings-directory>{folder}/bindings</bindings-directory>
 <large-messages-directory>{folder}/large</large-messages-directory><paging-directory>{folder}/paging</paging-directory>
 <acceptors><acceptor name="all">tcp://127.0.0.1:{port}?protocols={protocols}</acceptor></acceptors>
 <addresses>{listed}</addresses></core></configuration>
""",
        encoding="utf-8",
    )
    return file


def java(jars: Path, folder: Path, sources: list[Path], *line: str) -> None:
    """Compile ``sources`` without a warning, and run the class of the last one with ``line``."""
    classes = compiled(jars, folder, sources)
    logging = folder / "log4j2.properties"
    logging.write_text("rootLogger.level = off\n", encoding="utf-8")
    options = ["-Xmx512m", "-XX:TieredStopAtLevel=1", f"-Dlog4j2.configurationFile={logging.as_uri()}"]
    command = ["java", *options, "-cp", classes, sources[-1].stem, *line]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_SOON)
    assert done.returncode == 0, done.stdout + done.stderr
