"""Finds near-duplicates among the documents of a file, a line each, with datasketch, and prints which lines stay:

    python near.py CORPUS.txt

It does what dsload's --dedup near does: sets of runs of five words, MinHash of 128 values, 0.8 of them alike, and of alike documents the first stays.
"""

import hashlib
import importlib.metadata
import json
import re
import sys

from datasketch import MinHash, MinHashLSH


def main():
    index, kept = MinHashLSH(threshold=0.8, num_perm=128), []
    for k, line in enumerate(open(sys.argv[1], encoding="utf-8", newline="\n")):
        words = re.findall(r"\w+", line.lower())
        minhash = MinHash(num_perm=128)
        minhash.update_batch({" ".join(words[i : i + 5]).encode() for i in range(max(1, len(words) - 4))})
        if not any(minhash.jaccard(index_of[key]) >= 0.8 for key in index.query(minhash)):
            index.insert(k, minhash)
            index_of[k] = minhash
            kept.append(k)
    print(json.dumps({"kept": len(kept), "sha256": hashlib.sha256(json.dumps(kept).encode()).hexdigest(), "version": importlib.metadata.version("datasketch")}))


index_of = {}

if __name__ == "__main__":
    main()
