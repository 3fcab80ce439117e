package store

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/dsload/dsload/internal/lazy"
	"github.com/dsload/dsload/internal/shardfile"
)

// This file makes the names of the objects that no folder on a disk has; all others are shard's.
const (
	ownerName   = "build.remote"
	stateSuffix = ".state" // a part's own folder has it
)

// stretchPattern matches the objects that hold a stretch of an unfinished file: the file's name, and the
// offsets where the stretch begins and ends.
var stretchPattern = lazy.Regexp(`^(.+)\.part-(\d{16})-(\d{16})$`)

type stretch struct {
	file     string
	from, to int64
}

func (s stretch) name() string { return fmt.Sprintf("%s.part-%016d-%016d", s.file, s.from, s.to) }

func parseStretch(name string) (s stretch, ok bool) {
	m := stretchPattern().FindStringSubmatch(name)
	if m == nil {
		return s, false
	}
	s.file = m[1]
	s.from, _ = strconv.ParseInt(m[2], 10, 64) // 16 digits always fit
	s.to, _ = strconv.ParseInt(m[3], 10, 64)
	return s, true
}

// MarksBuild reports whether an object of this name is only in folders that a build writes to.
func MarksBuild(name string) bool { return name == ownerName }

// stateFolder returns the name of a part's own folder.
func stateFolder(part shardfile.Part) string {
	name := part.ManifestName()
	return strings.TrimSuffix(name, path.Ext(name)) + stateSuffix
}

// inState reports whether an object is in a part's own folder.
func inState(name string) bool {
	folder, _, nested := strings.Cut(name, "/")
	part, state := strings.CutSuffix(folder, stateSuffix)
	return nested && state && shardfile.IsPartManifest(part+path.Ext(shardfile.ManifestName))
}
