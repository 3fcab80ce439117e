package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBucketCommands checks that each command prints the same for a dataset in a bucket as in a
// folder.
func TestBucketCommands(t *testing.T) {
	eachBucket(t, func(t *testing.T, b *bucketTest) {
		dir := t.TempDir()
		tokenizer := filepath.Join(dir, "tok")
		source := filepath.Join(dir, "corpus.txt")
		if err := os.WriteFile(source, remoteLines(4000), 0o600); err != nil {
			t.Fatal(err)
		}
		b.run(t, dir, 0, "tokenizer", "train", source, "--vocab-size", "400", "--out", tokenizer)
		local, far := filepath.Join(dir, "data"), b.URI+"/commands/data"
		for _, out := range []string{local, far} {
			b.run(t, dir, 0, "build", source, "--out", out, "--tokenizer", tokenizer, "--shard-bytes", "64KiB",
				"--max-val-examples", "20", "--memory", "64MiB", "--progress", "none")
		}
		exported := filepath.Join(dir, "exported")
		for _, args := range [][]string{
			{"inspect", "DATASET"},
			{"inspect", "DATASET", "--json", "--examples", "7"},
			{"verify", "DATASET"},
			{"verify", "DATASET", "--json"},
			{"stats", "DATASET", "--json"},
			{"view", "DATASET", "--row", "3", "--json"},
			{"view", "DATASET", "--source", "corpus.txt", "--limit", "2"},
			{"which", "DATASET", "--step", "3", "--batch-size", "4", "--json"},
			{"which", "x=DATASET", "--document", "17", "--shuffle", "block"},
			{"export", "DATASET", "--to", "megatron,jsonl", "--out", exported, "--overwrite"},
		} {
			var printed, wrote [2]string
			for i, at := range []string{local, far} {
				with := append([]string(nil), args...)
				with[1] = strings.Replace(with[1], "DATASET", at, 1)
				printed[i] = strings.ReplaceAll(b.run(t, dir, 0, with...), at, "DATASET")
				if args[0] == "export" {
					for name, text := range treeOf(t, exported) {
						if !strings.HasSuffix(name, ".json") {
							wrote[i] += name + text
						}
					}
				}
			}
			if printed[0] != printed[1] || len(printed[0]) < 10 || len(wrote[0]) != len(wrote[1]) {
				t.Errorf("%v: %s\nwant %s", args, printed[1], printed[0])
			}
		}
		if left, _ := filepath.Glob(filepath.Join(dir, "dsload", "serve", "*")); len(left) > 0 {
			t.Errorf("left of the cache: %v", left)
		}
		b.put(t, "unfinished/build.checkpoint", []byte("x"))
		b.put(t, "damaged/manifest.json", []byte("{}"))
		damaged := []byte(b.tree(t, "commands/data")["train-00001.arrow"])
		damaged[len(damaged)/2] ^= 1
		b.put(t, "commands/data/train-00001.arrow", damaged)
		if out := b.run(t, dir, 3, "verify", far); !strings.Contains(out, "train-00001.arrow: ") ||
			!strings.Contains(out, "record batch") {
			t.Errorf("a damaged shard: %s", out)
		}
		b.run(t, dir, 3, "verify", b.URI+"/damaged")
		away := *b
		away.Env = append(away.Env, "AWS_ENDPOINT_URL=http://127.0.0.1:9", "STORAGE_EMULATOR_HOST=http://127.0.0.1:9",
			"AZURE_STORAGE_BLOB_ENDPOINT=http://127.0.0.1:9")
		for _, command := range []string{"inspect", "verify", "stats"} {
			for address, words := range map[string]string{b.URI + "/commands/none": "check the address",
				b.URI: "not the address of a folder", "ftp://host/x": "ftp:// cannot be read"} {
				if out := b.run(t, dir, 2, command, address); !strings.Contains(out, words) ||
					strings.Count(out, "\n") != 1 {
					t.Errorf("%s %s: %s", command, address, out)
				}
			}
			if out := away.run(t, dir, 6, command, far); !strings.Contains(out, "refused") ||
				!strings.Contains(out, far) || strings.Count(out, "\n") != 1 {
				t.Errorf("no server: %s", out)
			}
		}
	})
}
