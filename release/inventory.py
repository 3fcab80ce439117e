"""What is linked into the programs: their modules, the licences of these, and both as an SBOM."""

from __future__ import annotations

import hashlib
import json
import pathlib
import re
import subprocess
from typing import NamedTuple

LICENSE_NAME = re.compile(r"(LICEN[CS]E|COPYING|NOTICE|PATENTS)([.-].*)?$", re.I)
# What a licence says, and its name in SPDX's list. A text with none of these is refused: somebody has to read it.
KINDS = {
    "Apache-2.0": r"Apache License,?\s+Version 2\.0",
    "MIT": r"Permission is hereby granted, free of charge",
    "BSD-3-Clause": r"Redistribution and use in source and binary forms(?s:.)*(Neither the name|may not be used to endorse)",
    "BSD-2-Clause": r"Redistribution and use in source and binary forms(?!(?s:.)*(Neither the name|may not be used to endorse))",
    "MPL-2.0": r"Mozilla Public License,? (Version|v\.) 2\.0",
    "CC0-1.0": r"CC0 1\.0 Universal",
    "LicenseRef-public-domain": r"files have been put\s+into the public domain",
    "ISC": r"Permission to use, copy, modify, and/or distribute this software",
}


class Module(NamedTuple):
    path: str
    version: str
    licenses: dict[str, str]  # file, text

    @property
    def spdx(self) -> str:
        found = {kind for text in self.licenses.values() for kind, says in KINDS.items() if re.search(says, text)}
        return " AND ".join(sorted(found))

    @property
    def id(self) -> str:
        return "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]+", "-", f"{self.path}-{self.version}")


def _output(command: list[str], folder: pathlib.Path, env: dict[str, str]) -> str:
    return subprocess.run(command, cwd=folder, env=env, check=True, stdout=subprocess.PIPE, text=True).stdout


def _licenses(folder: pathlib.Path, root: pathlib.Path) -> dict[str, str]:
    """The licence files of a folder and of those around it up to root."""
    found = {}
    for place in (folder, *folder.parents):
        for file in sorted(place.iterdir()):
            if file.is_file() and file.suffix != ".go" and LICENSE_NAME.match(file.name):
                found[file.relative_to(root).as_posix()] = file.read_text(encoding="utf-8", errors="replace")
        if place == root:
            return found
    raise AssertionError(f"{folder} is not in {root}")


def linked(go: list[str], source: pathlib.Path, envs: list[dict[str, str]]) -> dict[str, Module]:
    """The modules that the program is linked from on any of the platforms, ours and Go's own library included, by path."""
    modules: dict[str, Module] = {}
    home = pathlib.Path(_output([*go, "env", "GOMOD"], source, envs[0])).parent
    for env in envs:
        fields = '{{with .Module}}{{.Path}}\t{{.Version}}\t{{.Dir}}\t{{$.Dir}}\t{{join $.EmbedFiles "\t"}}{{end}}'
        packages = _output([*go, "list", "-deps", "-f", fields, "./cmd/dsload"], source, env).splitlines()
        for path, version, root, folder, *embedded in (line.split("\t") for line in packages):
            module = modules.setdefault(path, Module(path, version, {}))
            if home in pathlib.Path(root).parents:
                root = home  # a module of ours has the repository's licence
            for place in {pathlib.Path(folder), *(pathlib.Path(folder, name).parent for name in embedded if name)}:
                module.licenses.update(_licenses(place, pathlib.Path(root)))
    root, version = _output([*go, "env", "GOROOT", "GOVERSION"], source, envs[0]).split()
    modules["std"] = Module("std", version, {"LICENSE": pathlib.Path(root, "LICENSE").read_text(encoding="utf-8")})
    for module in modules.values():
        if not module.spdx:
            files = ", ".join(module.licenses) or "no licence file"
            raise SystemExit(
                f"release: the licence of {module.path} {module.version} is not known ({files}): "
                "read it, and add it to KINDS of release/inventory.py if its terms can be met"
            )
    return modules


def license_text(modules: dict[str, Module], own: str) -> str:
    """The licences of others: who has them, then each text once."""
    texts: dict[str, list[str]] = {}
    lines = ["dsload is linked from these modules. Their licences follow, each once.", ""]
    for module in sorted(modules.values()):
        lines.append(f"{module.path} {module.version}: {module.spdx}".replace(" :", ":"))
        for name, text in sorted(module.licenses.items()):
            if name != "LICENSE" or not f"{module.path}/".startswith(f"{own}/"):
                texts.setdefault(text.strip(), []).append(f"{module.path}/{name}")
    for text, names in sorted(texts.items(), key=lambda item: item[1]):
        lines += ["", "=" * 80, *names, "=" * 80, "", text]
    return "\n".join(lines) + "\n"


def sbom(go: list[str], programs: dict[str, pathlib.Path], modules: dict[str, Module], own: str, version: str, commit: str, created: str) -> str:
    """An SPDX document in JSON. What each program is linked from is what the program itself says (go version -m)."""
    root = Module(own, f"v{version}", modules[own].licenses)
    packages, files, relations = [], [], [("SPDXRef-DOCUMENT", "DESCRIBES", root.id)]
    for module in [root, *(m for path, m in sorted(modules.items()) if path != own)]:
        purl = {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": f"pkg:golang/{module.path}@{module.version}"}
        packages.append(
            {
                "SPDXID": module.id,
                "name": module.path,
                "versionInfo": module.version,
                "downloadLocation": "NOASSERTION",
                "filesAnalyzed": False,
                "licenseConcluded": module.spdx,
                "licenseDeclared": module.spdx,
                "copyrightText": "NOASSERTION",
                "externalRefs": [purl],
            }
        )
    for name, path in sorted(programs.items()):
        data = path.read_bytes()
        checksums = [{"algorithm": a, "checksumValue": hashlib.new(a, data).hexdigest()} for a in ("SHA1", "SHA256")]
        id = f"SPDXRef-program-{name}"
        files.append(
            {"SPDXID": id, "fileName": f"./{name}", "checksums": checksums, "licenseConcluded": "NOASSERTION", "copyrightText": "NOASSERTION"}
        )
        relations += [(id, "GENERATED_FROM", root.id), (id, "DEPENDS_ON", modules["std"].id)]
        info = json.loads(subprocess.run([*go, "version", "-m", "-json", str(path)], check=True, stdout=subprocess.PIPE).stdout)
        for dep in info["Deps"]:
            if modules[dep["Path"]].version != dep["Version"]:
                raise AssertionError(f"{name} is linked from {dep['Path']} {dep['Version']}, not {modules[dep['Path']].version}")
            relations.append((id, "DEPENDS_ON", modules[dep["Path"]].id))
    document = {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"dsload-{version}",
        "documentNamespace": f"https://{own}/releases/v{version}/sbom-{commit}",
        "creationInfo": {"created": created, "creators": ["Tool: dsload-release"]},
        "packages": packages, "files": files,
        "hasExtractedLicensingInfos": [{"licenseId": "LicenseRef-public-domain", "extractedText": "Put into the public domain by its authors."}],
        "relationships": [{"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b} for a, kind, b in relations],
    }
    return json.dumps(document, indent=1) + "\n"
