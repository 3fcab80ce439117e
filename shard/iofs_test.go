package shard_test

import (
	"errors"
	"io/fs"
	"os"
	"testing"
	"testing/fstest"

	"github.com/dsload/dsload/shard"
)

// A dataset is read and verified in any file system of package io/fs whose files are read at any position.
func TestAnyFileSystem(t *testing.T) {
	all := fstest.MapFS{}
	if err := fs.WalkDir(os.DirFS("../testdata/datasets"), "words", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := os.ReadFile("../testdata/datasets/" + path)
		all[path] = &fstest.MapFile{Data: data, Mode: 0o644}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for name, fsys := range map[string]fs.FS{"folder": os.DirFS("../testdata/datasets"), "memory": all} {
		t.Run(name, func(t *testing.T) {
			if damage, err := shard.Verify(ctx, fsys, "words", nil); len(damage) > 0 || err != nil {
				t.Error(damage, err)
			}
			d, err := shard.OpenFS(fsys, "words")
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			n := int64(0)
			for _, err := range split(t, d, "train").Rows(0, 4) {
				if err != nil {
					t.Fatal(err)
				}
				n++
			}
			if n != 4 {
				t.Errorf("%d rows", n)
			}
			if _, err := shard.OpenFS(fsys, "none"); !errors.Is(err, shard.ErrNotFound) {
				t.Error(err)
			}
		})
	}
	if _, err := shard.OpenFS(onward{all}, "words"); !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}

// onward is a file system whose files are only read from their beginning.
type onward struct{ fs.FS }

func (o onward) Open(name string) (fs.File, error) {
	f, err := o.FS.Open(name)
	return struct{ fs.File }{f}, err
}
