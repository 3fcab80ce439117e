package shardfile

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// A Part is one partition of a build. The builders of all parts write into one folder at the same
// time, each its own shards, checkpoint, lock and manifest; a merge then writes the folder's
// manifest. The zero Part is a whole build.
type Part struct {
	Number int // counted from 0
	Of     int // partitions; 0 for a whole build
}

// MaxParts is the number of names that parts can have.
const MaxParts = MaxShardIndex + 1

// IsPart reports whether p is one partition of several.
func (p Part) IsPart() bool { return p.Of > 0 }

func (p Part) Validate() error {
	if p.IsPart() && (p.Number < 0 || p.Number >= p.Of || p.Of > MaxParts) || !p.IsPart() && p != (Part{}) {
		return fmt.Errorf("part %d of %d: %w: numbers go from 0 to the number of parts less one, at most %d", p.Number,
			p.Of, ErrRange, MaxParts)
	}
	return nil
}

// ShardName returns the file name of the part's i-th shard of a split, such as
// "train-p00001-00000.arrow".
func (p Part) ShardName(split string, i int) string {
	if !p.IsPart() {
		return ShardName(split, i)
	}
	return PartName{Split: SplitIndex(split), Part: p.Number, Index: i}.String()
}

// file returns the name that a file of a whole build has in the part.
func (p Part) file(whole, suffix string) string {
	if !p.IsPart() {
		return whole
	}
	return fmt.Sprintf("%sp%05d%s", partPrefix, p.Number, suffix)
}

// ManifestName returns the name of the part's own manifest.
func (p Part) ManifestName() string   { return p.file(ManifestName, manifestSuffix) }
func (p Part) CheckpointName() string { return p.file(BuildCheckpointName, checkpointSuffix) }
func (p Part) LockName() string       { return p.file(LockName, lockSuffix) }

// PlanTempName returns the name under which the part writes its copy of the plan before it renames
// it to PlanName.
func (p Part) PlanTempName() string { return p.file("", planSuffix+TempSuffix) }

// PartName is the parsed name of a part's shard.
type PartName struct {
	Split, Part, Index int
	Cut                bool // a copy of the shard that ends where a budget of the whole build does
	Temp               bool
}

// String returns the name of the file, without the suffix of a temporary one.
func (n PartName) String() string {
	cut := ""
	if n.Cut {
		cut = cutSuffix
	}
	return fmt.Sprintf("%s-p%05d-%05d%s%s", SplitNames[n.Split], n.Part, n.Index, cut, shardSuffix)
}

// ParsePartName is the inverse of PartName.String. The name may end in TempSuffix.
func ParsePartName(name string) (n PartName, ok bool) {
	split, rest, found := strings.Cut(name, "-p")
	const digits = 5
	if n.Split = SplitIndex(split); !found || n.Split < 0 || len(rest) < 2*digits+1 || rest[digits] != '-' {
		return PartName{}, false
	}
	part, partOK := parseDigits(rest[:digits])
	index, indexOK := parseDigits(rest[digits+1 : 2*digits+1])
	n.Part, n.Index, rest = part, index, rest[2*digits+1:]
	rest, n.Temp = strings.CutSuffix(rest, TempSuffix)
	rest, found = strings.CutSuffix(rest, shardSuffix)
	n.Cut = rest == cutSuffix
	if !partOK || !indexOK || !found || rest != "" && !n.Cut {
		return PartName{}, false
	}
	return n, true
}

// parseDigits returns the number that a few decimal digits are.
func parseDigits(s string) (n int, ok bool) {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, true
}

// After reports whether a shard of this name may follow one named last in a merged manifest.
func (n PartName) After(last PartName) bool {
	return n.Part > last.Part || n.Part == last.Part && n.Index > last.Index
}

// Before reports whether a shard of this name may come before one of the other in a merged manifest.
func (n PartName) Before(other PartName) bool { return other.After(n) }

// partFilePattern is compiled when it is first asked for: few folders have parts.
var partFilePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^part-p(\d{5})\.(json|checkpoint|lock|plan|origins|origins-val|seen)(\.pages)?(\.tmp)?$`)
})

// partExtras are the suffixes of the files that a part has besides its shards, by their names in a
// whole dataset. A merge joins them.
var partExtras = map[string]string{OriginsName: ".origins", ValOriginsName: ".origins-val", HashesName(0): ".seen"}

// ExtraName returns the name that a file other than a shard, such as OriginsName, has in the part.
func (p Part) ExtraName(name string) string {
	if suffix, ok := partExtras[name]; ok {
		return p.file(name, suffix)
	}
	return name
}

// IsPartExtra reports whether ExtraName made a name.
func IsPartExtra(name string) bool {
	m := partFilePattern().FindStringSubmatch(name)
	if m == nil || m[3] != "" || m[4] != "" {
		return false
	}
	for _, suffix := range partExtras {
		if suffix == "."+m[2] {
			return true
		}
	}
	return false
}

// ParsePartFile returns the part that a file other than a shard belongs to.
func ParsePartFile(name string) (part int, ok bool) {
	m := partFilePattern().FindStringSubmatch(name)
	if m == nil {
		return 0, false
	}
	part, _ = strconv.Atoi(m[1])
	return part, true
}

// IsPartManifest reports whether a name is that of a part's own manifest.
func IsPartManifest(name string) bool {
	part, ok := ParsePartFile(name)
	return ok && name == Part{part, MaxParts}.ManifestName()
}

// OfPart returns the part whose builder made a file of this name.
func OfPart(name string) (part int, ok bool) {
	if n, ok := ParsePartName(name); ok {
		return n.Part, true
	}
	return ParsePartFile(name)
}

// IsMergedFile reports whether a name is of a file that a merge makes, or of its lock.
func IsMergedFile(name string) bool {
	switch name {
	case ManifestName, LockName, AdditionCheckpointName, OriginsName, ValOriginsName, HeldOutName, RunName, RejectsName:
		return true
	}
	return isNumberedName(name) || IsListName(name) || isTokenizerName(name)
}
