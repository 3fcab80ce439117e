// Package refdata finds the reference data that some tests compare with: tokenizer files, corpora
// and reference ids that are not part of the project. Only tests import it.
package refdata

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Dir returns the absolute path of the folder of reference data: $DSLOAD_SHARED if that is set,
// else the folder shared next to the project's root. It returns "" if the folder does not exist.
var Dir = sync.OnceValue(func() string {
	dir := os.Getenv("DSLOAD_SHARED")
	if dir == "" {
		root, err := os.Getwd()
		for ; err == nil; root = filepath.Dir(root) {
			if _, found := os.Stat(filepath.Join(root, "go.mod")); found == nil {
				break
			}
			if root == filepath.Dir(root) {
				return ""
			}
		}
		dir = filepath.Join(root, "..", "shared")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	if _, err := os.Stat(filepath.Join(dir, "golden")); err != nil {
		return ""
	}
	return dir
})

// Path returns the path of a file or folder of the reference data. It skips the test if there is no
// such file.
func Path(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join(Dir(), name)
	if _, err := os.Stat(path); Dir() == "" || err != nil {
		t.Skipf("no shared reference data %s: set DSLOAD_SHARED", name)
	}
	return path
}

// Read returns the content of a file of the reference data. It skips the test if there is no such
// file.
func Read(t testing.TB, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(Path(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}
