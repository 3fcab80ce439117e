"""An example of a trainer: it reads batches from the feed's socket and counts them."""

import os
import time

import dsload

with dsload.Loader(socket=os.environ.get("DSLOAD_SOCKET", "/run/dsload/feed.sock"), batch_size=32, epochs=1, output="numpy") as loader:
    start, steps, tokens = time.monotonic(), 0, 0
    for batch in loader:
        steps += 1
        tokens += int(batch["attention_mask"].sum())
        # loss = model(**batch).loss; loss.backward(); …
    print(f"{steps} steps, {tokens} tokens in {time.monotonic() - start:.1f} s")
