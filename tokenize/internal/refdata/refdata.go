// Package refdata finds the reference data that some tests compare with, as the package of that
// name in the repository's root does, which belongs to another module.
package refdata

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// Dir returns the absolute path of the folder of reference data: $DSLOAD_SHARED if that is set,
// else the folder shared next to the repository's. It returns "" if the folder does not exist.
var Dir = sync.OnceValue(func() string {
	dir := os.Getenv("DSLOAD_SHARED")
	if dir == "" {
		module, err := os.Getwd()
		for ; err == nil && module != filepath.Dir(module); module = filepath.Dir(module) {
			if _, found := os.Stat(filepath.Join(module, "go.mod")); found == nil {
				break
			}
		}
		dir = filepath.Join(module, "../../shared")
	}
	dir, err := filepath.Abs(dir)
	if err == nil {
		_, err = os.Stat(filepath.Join(dir, "golden"))
	}
	if err != nil {
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
