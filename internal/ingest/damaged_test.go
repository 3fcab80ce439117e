package ingest

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
	"github.com/dsload/dsload/shard"
)

// damagedSources makes damaged files of several kinds, and a sound one.
func damagedSources(t *testing.T) (paths []string) {
	t.Helper()
	dir := t.TempDir()
	add := func(name string, data []byte) {
		paths = append(paths, filepath.Join(dir, name))
		put(t, paths[len(paths)-1], data)
	}
	text := jsonLines(0, 1500, -1)
	gz := packers[".jsonl.gz"](t, text)
	add("a.jsonl.gz", gz[:len(gz)/2])
	zst := packers[".jsonl.zst"](t, jsonLines(0, 4000, -1))
	zst[len(zst)*9/10] ^= 0x10
	add("b.jsonl.zst", zst)
	var zipped, tarred bytes.Buffer
	z, w := zip.NewWriter(&zipped), tar.NewWriter(&tarred)
	for i := range 40 {
		name, data := fmt.Sprintf("%02d.txt", i), fmt.Sprintf("member number %d of an archive", i)
		m, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err == nil {
			_, err = m.Write([]byte(data))
		}
		if err == nil {
			err = w.WriteHeader(&tar.Header{Name: name, Size: int64(len(data)), Mode: 0o600})
		}
		if err == nil {
			_, err = w.Write([]byte(data))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	add("c.zip", bytes.Replace(zipped.Bytes(), []byte("number 20 of"), []byte("number 2O of"), 1))
	add("d.tar", bytes.Replace(tarred.Bytes(), []byte("30.txt"), []byte("3O.txt"), 1))
	parquet, err := os.ReadFile("source/columnar/testdata/plain.parquet")
	if err != nil {
		t.Fatal(err)
	}
	add("e.parquet", parquet[:len(parquet)-9])
	add("f.jsonl", []byte(jsonLines(1500, 1800, -1)))
	return paths
}

// Damaged sources end a build with the file and row. With SkipBadRecord what cannot be read is left
// out, reported and counted, wherever the build stopped in between.
func TestDamagedSources(t *testing.T) {
	o := option.Options{Out: "data",
		Resources: option.Resources{LoadedTokenizer: small(), FS: shardtest.New(), Workers: 2, CheckpointEvery: 60,
			CheckpointInterval: 1},
		Settings: option.Settings{Sources: damagedSources(t)}}
	fails := o
	if _, err := Run(context.Background(), fails); !source.IsDamage(err) ||
		!strings.Contains(err.Error(), "e.parquet") ||
		!strings.Contains(err.Error(), "`on-bad-record` skip") {
		t.Errorf("sources of which one has no footer: %v", err)
	}
	for i, row := range []string{"a.jsonl.gz, row ", "b.jsonl.zst, row ", "the checksum of 20.txt differs",
		"d.tar, row 31"} {
		fails.Sources = o.Sources[i : i+1]
		fails.FS = shardtest.New()
		_, err := Run(context.Background(), fails)
		if !source.IsDamage(err) || !strings.Contains(err.Error(), row) ||
			!strings.Contains(err.Error(), "`on-bad-record` skip") {
			t.Errorf("%s: %v", fails.Sources[0], err)
		}
		fails.OnBadRecord = option.SkipBadRecord
		cured := mustBuild(t, fails)
		afresh := fails
		afresh.FS = shardtest.New()
		mustBuild(t, afresh)
		wantSame(t, fails.Sources[0], files(afresh.FS.(*shardtest.FS)), files(fails.FS.(*shardtest.FS)))
		if cured.Rejected != 1 || len(cured.Warnings) == 0 {
			t.Errorf("%s: %d rejected, %q", fails.Sources[0], cured.Rejected, cured.Warnings)
		}
		fails.OnBadRecord = option.FailAtBadRecord
	}
	o.OnBadRecord = option.SkipBadRecord
	s := mustBuild(t, o)
	want := files(o.FS.(*shardtest.FS))
	checkDamageTold(t, s, want)
	ops := o.FS.(*shardtest.FS).Ops()
	cut := o
	cut.Workers = 1
	for k := 5; k < ops; k += 1 + ops/12 {
		if !wantSameAfterCrash(t, cut, k, want) {
			t.Fatalf("cut at %d: no error", k)
		}
	}
}

// checkDamageTold looks for what was lost in the summary, the manifest and the list of bad records.
func checkDamageTold(t *testing.T, s *report.Summary, files map[string][]byte) {
	t.Helper()
	var m shard.Manifest
	if err := json.Unmarshal(files["data/manifest.json"], &m); err != nil {
		t.Fatal(err)
	}
	if s.Rejected != 5 || m.Counters["rejected"] != 5 || m.Counters["damaged_inputs"] != 5 ||
		m.Counters["damaged_inputs_cut_off"] != 4 {
		t.Errorf("%d rejected, counters %v", s.Rejected, m.Counters)
	}
	for _, text := range []string{fault.Join(s.Notes, "\n").String(), fault.Join(s.Warnings, "\n").String(),
		fault.Join(report.Losses(&m), "\n").String()} {
		if !strings.Contains(text, "damaged inputs: 5") {
			t.Errorf("nothing of the damage in %q", text)
		}
	}
	rejects := string(files["data/"+shardfile.RejectsName])
	for _, part := range []string{"a.jsonl.gz", "rows of the file were read before", `"member":"20.txt"`,
		"30 rows of the file were read before", "no row of the file could be read before"} {
		if !strings.Contains(rejects, part) {
			t.Errorf("%q is not in %s", part, rejects)
		}
	}
}
