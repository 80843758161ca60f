"""A real JMS provider for tests: Artemis from Maven Central, which a Java program embeds."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import Final

from model_tests.support.tools import missing

__all__ = ["artemis", "broker_xml", "java"]

_PLUGIN: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
_ARTIFACT: Final = "org.apache.artemis:apache-artemis:2.56.0:tar.gz:bin"
_NAME: Final = "apache-artemis-2.56.0-bin.tar.gz"
_KEPT: Final = Path.home() / ".m2/repository/org/apache/artemis/apache-artemis/2.56.0" / _NAME
_MINUTES: Final = 300
_SOON: Final = 90


def artemis(folder: Path) -> Path:
    """The folder of Artemis' jars, below ``folder``.  Skips the test without a JDK, Maven or Maven Central."""
    for tool, package in (("javac", "default-jdk-headless"), ("mvn", "maven")):
        if shutil.which(tool) is None:
            missing(f"there is no {tool}; install it with: apt-get install {package}")
    kept = _KEPT
    if not kept.exists():
        command = ["mvn", "-q", "-B", "-ntp", "-U", _PLUGIN, f"-Dartifact={_ARTIFACT}", f"-DoutputDirectory={folder}"]
        done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder, timeout=_MINUTES)
        kept = folder / _NAME
        if done.returncode or not kept.exists():
            missing(f"Artemis cannot be had of Maven Central: {done.stdout[-500:]}")
    jars = folder / "artemis"
    jars.mkdir()
    with tarfile.open(kept) as archive:
        for member in archive:
            if member.name.endswith(".jar") and Path(member.name).parent.name == "lib":
                member.name = Path(member.name).name
                archive.extract(member, jars, filter="data")
    return jars


def broker_xml(folder: Path, port: int, queues: list[str]) -> Path:
    """The configuration of a broker that listens at ``port`` and keeps its data in ``folder``."""
    listed = "".join(f'<address name="{name}"><anycast><queue name="{name}"/></anycast></address>' for name in queues)
    file = folder / "broker.xml"
    file.write_text(
        f"""<configuration xmlns="urn:activemq"><core xmlns="urn:activemq:core"><name>test</name>
 <persistence-enabled>true</persistence-enabled><security-enabled>false</security-enabled>
 <jmx-management-enabled>false</jmx-management-enabled><journal-type>NIO</journal-type>
 <journal-pool-files>10</journal-pool-files><journal-file-size>1M</journal-file-size>
 <journal-directory>{folder}/journal</journal-directory><bindings-directory>{folder}/bindings</bindings-directory>
 <large-messages-directory>{folder}/large</large-messages-directory><paging-directory>{folder}/paging</paging-directory>
 <acceptors><acceptor name="all">tcp://127.0.0.1:{port}?protocols=CORE</acceptor></acceptors>
 <addresses>{listed}</addresses></core></configuration>
""",
        encoding="utf-8",
    )
    return file


def java(jars: Path, folder: Path, sources: list[Path], *line: str) -> None:
    """Compile ``sources`` without a warning, and run the class of the last one with ``line``."""
    classes = f"{jars}/*"
    _run(["javac", "-Xlint:all", "-Werror", "-proc:none", "-cp", classes, "-d", str(folder), *map(str, sources)])
    logging = folder / "log4j2.properties"
    logging.write_text("rootLogger.level = off\n", encoding="utf-8")
    options = ["-Xmx512m", "-XX:TieredStopAtLevel=1", f"-Dlog4j2.configurationFile={logging.as_uri()}"]
    _run(["java", *options, "-cp", f"{classes}:{folder}", sources[-1].stem, *line])


def _run(command: list[str]) -> None:
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_SOON)
    assert done.returncode == 0, done.stdout + done.stderr
