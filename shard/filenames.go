package shard

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// This file makes every name that dsload puts into a dataset folder.
const (
	ManifestName  = "manifest.json"
	TokenizerName = "tokenizer.json"
	RunName       = "run.json"
	// TokenizerConfigName has the tokens that were added to a tokenizer whose file has no place for them.
	TokenizerConfigName = "tokenizer_config.json"
	RejectsName         = "rejects.jsonl"
	// OriginsName maps documents to the records they came from (package origins). If the split val
	// has its own sources, ValOriginsName does so for its documents.
	OriginsName    = "origins.bin"
	ValOriginsName = "origins-val.bin"
	// HeldOutName has the hashes of the documents that were held out for the split val: 64 bits
	// each, ascending.
	HeldOutName = "held-out.bin"

	// OriginsSuffix is the suffix of these files while the build is unfinished.
	OriginsSuffix = ".pages"

	// PlanName is the name of the plan's copy in a folder of parts.
	PlanName = "plan.json"
	// PlanFormat is the plan's member "format", by which its copy is known from another program's plan.json.
	PlanFormat = "dsload-plan"

	lockName       = "build.lock"
	checkpointName = "build.checkpoint"
	// additionCheckpointName is the checkpoint of an addition to a finished dataset.
	additionCheckpointName = "append.checkpoint"
	seenLogName            = "build.seen"

	shardSuffix = ".arrow"
	tempSuffix  = ".tmp" // of every unfinished file
	cutSuffix   = "-cut" // of a shard that ends where a budget of the whole build does

	partPrefix       = "part-"
	manifestSuffix   = ".json" // of a part, as all below
	checkpointSuffix = ".checkpoint"
	lockSuffix       = ".lock"
	planSuffix       = ".plan" // before it is renamed to PlanName
)

// maxShardIndex keeps shard names sorted: with six digits they would not be.
const maxShardIndex = 99_999

// The splits a dataset may have, in the order of manifests and checkpoints.
var splitNames = [...]string{"train", "val"}

const numSplits = len(splitNames)

// splitIndex returns the index of a split, or -1 for an unknown name.
func splitIndex(name string) int {
	for i, s := range splitNames {
		if s == name {
			return i
		}
	}
	return -1
}

// shardName returns the file name of the i-th shard of a split, such as "train-00000.arrow".
func shardName(split string, i int) string {
	return fmt.Sprintf("%s-%05d%s", split, i, shardSuffix)
}

// parseShardName is the inverse of shardName. The name may end in tempSuffix. ok is false for any
// other name.
func parseShardName(name string) (split, index int, temp, ok bool) {
	name, temp = strings.CutSuffix(name, tempSuffix)
	base, found := strings.CutSuffix(name, shardSuffix)
	if !found {
		return 0, 0, false, false
	}
	s, digits, found := strings.Cut(base, "-")
	if split = splitIndex(s); !found || split < 0 || len(digits) != 5 {
		return 0, 0, false, false
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil || shardName(s, int(n)) != name {
		return 0, 0, false, false
	}
	return split, int(n), temp, true
}

// SplitNames returns the names of the splits that a dataset may have.
func SplitNames() []string { return splitNames[:] }

// IsShard reports whether a name is that of a finished shard.
func IsShard(name string) bool {
	_, _, temp, whole := parseShardName(name)
	n, ofPart := parsePartName(name)
	return whole && !temp || ofPart && !n.temp
}

// TempName returns the name of a shard while it is unfinished.
func TempName(shard string) string { return shard + tempSuffix }

// CheckpointName returns the name of the checkpoint of a build, or of an addition to a dataset.
func CheckpointName(part Part, adds bool) string {
	if adds {
		return additionCheckpointName
	}
	return part.checkpointName()
}

// A Role is what a file is to the build that writes it.
type Role int

const (
	RoleWhole      Role = iota // a finished file
	RoleGrowing                // an unfinished file that is written only at its end: a shard, or origins
	RoleChanging               // an unfinished file that a checkpoint needs as it is: the log of hashes
	RoleCheckpoint             // a checkpoint
	RoleScratch                // a file that no other run needs: a lock, or one that will get another name
)

// RoleOf returns the role of a file in the folder of a build.
func RoleOf(name string) Role {
	base, temp := strings.CutSuffix(name, tempSuffix)
	switch {
	case temp && strings.HasSuffix(base, shardSuffix), strings.HasSuffix(name, OriginsSuffix):
		return RoleGrowing
	case name == seenLogName:
		return RoleChanging
	case strings.HasSuffix(name, checkpointSuffix):
		return RoleCheckpoint
	case temp, strings.HasSuffix(name, lockSuffix):
		return RoleScratch
	}
	return RoleWhole
}

// TokenizerNames returns the names that a dataset's copy of its tokenizer may have: of a
// tokenizer.json, a SentencePiece model, or tiktoken ranks.
func TokenizerNames() []string {
	return []string{TokenizerName, "tokenizer.model", "tokenizer.tiktoken"}
}

func isTokenizerName(name string) bool {
	return name == TokenizerConfigName || slices.Contains(TokenizerNames(), name)
}

const hashesName = "dedup.bin"

// HashesName returns the name of the i-th file of the hashes by which documents were compared: one
// of the build, then one of each addition.
func HashesName(i int) string { return AdditionName(hashesName, i) }

// IsHashes reports whether HashesName made a name.
func IsHashes(name string) bool { return IsAddition(name, hashesName) }

// AdditionName returns the name of a build's file, RejectsName or OriginsName, in the i-th
// addition, counted from 1: "rejects-00001.jsonl".
func AdditionName(name string, i int) string {
	stem, suffix, _ := strings.Cut(name, ".")
	return fmt.Sprintf("%s-%05d.%s", stem, i, suffix)
}

// IsAddition reports whether AdditionName made a name of base.
func IsAddition(name, base string) bool {
	stem, suffix, _ := strings.Cut(base, ".")
	digits, isNumbered := strings.CutPrefix(name, stem+"-")
	digits, hasSuffix := strings.CutSuffix(digits, "."+suffix)
	return isNumbered && hasSuffix && len(digits) == 5 && strings.Trim(digits, "0123456789") == ""
}

// ListName returns the name of the file that lists the shards of a split with very many.
func ListName(split string) string { return "shards-" + split + ".bin" }

func isListName(name string) bool {
	split, found := strings.CutPrefix(name, "shards-")
	split, ends := strings.CutSuffix(split, ".bin")
	return found && ends && splitIndex(split) >= 0
}

// isNumberedName reports whether a name is that of a file of hashes or of an addition.
func isNumberedName(name string) bool {
	return IsAddition(name, hashesName) || IsAddition(name, RejectsName) || IsAddition(name, OriginsName)
}

// ownName reports whether a build may have made a file of this name, and so may remove it.
func ownName(name string) bool {
	if _, _, _, ok := parseShardName(name); ok {
		return true
	}
	if _, ok := ofPart(name); ok {
		return true
	}
	switch strings.TrimSuffix(name, tempSuffix) {
	case ManifestName, RunName, RejectsName, lockName, checkpointName, additionCheckpointName, seenLogName, PlanName,
		OriginsName, ValOriginsName, OriginsName + OriginsSuffix, ValOriginsName + OriginsSuffix:
		return true
	}
	name = strings.TrimSuffix(name, tempSuffix)
	return isTokenizerName(name) || isNumberedName(name) || name == HeldOutName || isListName(name)
}

// ignoredName reports whether a name is one that file systems and desktops leave in folders.
func ignoredName(name string) bool { return strings.HasPrefix(name, ".") || name == "lost+found" }

// validExtraName reports whether WriteFile accepts name: a plain file name that collides with none
// of ours.
func validExtraName(name string) bool {
	if name == RejectsName || name == OriginsName || name == ValOriginsName || name == HeldOutName ||
		isNumberedName(name) || isPartExtra(name) || isListName(name) ||
		isTokenizerName(name) {
		return true
	}
	if name == "" || len(name) > 255 || name[0] == '.' || ownName(name) || strings.HasSuffix(name, tempSuffix) ||
		strings.HasSuffix(name, shardSuffix) {
		return false
	}
	for i := 0; i < len(name); i++ {
		c := name[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_') {
			return false
		}
	}
	return true
}

// ShardName returns the file name of the part's i-th shard of a split, such as
// "train-p00001-00000.arrow".
func (p Part) ShardName(split string, i int) string {
	if !p.isPart() {
		return shardName(split, i)
	}
	return fmt.Sprintf("%s-p%05d-%05d%s", split, p.Number, i, shardSuffix)
}

// cutShardName returns the name of the copy of the part's i-th shard that ends where a budget of
// the whole build does.
func (p Part) cutShardName(split string, i int) string {
	return fmt.Sprintf("%s-p%05d-%05d%s%s", split, p.Number, i, cutSuffix, shardSuffix)
}

func (p Part) file(suffix string) string {
	return fmt.Sprintf("%sp%05d%s", partPrefix, p.Number, suffix)
}

// ManifestName returns the name of the part's own manifest.
func (p Part) ManifestName() string {
	if !p.isPart() {
		return ManifestName
	}
	return p.file(manifestSuffix)
}

func (p Part) checkpointName() string {
	if !p.isPart() {
		return checkpointName
	}
	return p.file(checkpointSuffix)
}

func (p Part) lockName() string {
	if !p.isPart() {
		return lockName
	}
	return p.file(lockSuffix)
}

// PlanTempName returns the name under which the part writes its copy of the plan before it renames
// it to PlanName.
func (p Part) PlanTempName() string { return p.file(planSuffix + tempSuffix) }

// partName is the parsed name of a part's shard.
type partName struct {
	split, part, index int
	cut, temp          bool
}

// parsePartName is the inverse of Part.ShardName and Part.cutShardName. The name may end in
// tempSuffix.
func parsePartName(name string) (n partName, ok bool) {
	split, rest, found := strings.Cut(name, "-p")
	const digits = 5
	if n.split = splitIndex(split); !found || n.split < 0 || len(rest) < 2*digits+1 || rest[digits] != '-' {
		return partName{}, false
	}
	part, partOK := parseDigits(rest[:digits])
	index, indexOK := parseDigits(rest[digits+1 : 2*digits+1])
	n.part, n.index, rest = part, index, rest[2*digits+1:]
	rest, n.temp = strings.CutSuffix(rest, tempSuffix)
	rest, found = strings.CutSuffix(rest, shardSuffix)
	n.cut = rest == cutSuffix
	if !partOK || !indexOK || !found || rest != "" && !n.cut {
		return partName{}, false
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

// after reports whether a shard of this name may follow one named last in a merged manifest.
func (n partName) after(last partName) bool {
	return n.part > last.part || n.part == last.part && n.index > last.index
}

// partFilePattern is compiled when it is first asked for: few folders have parts.
var partFilePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^part-p(\d{5})\.(json|checkpoint|lock|plan|origins|origins-val|seen)(\.pages)?(\.tmp)?$`)
})

// partExtras are the suffixes of the files that a part has besides its shards, by their names in a
// whole dataset. A merge joins them.
var partExtras = map[string]string{OriginsName: ".origins", ValOriginsName: ".origins-val", HashesName(0): ".seen"}

// ExtraName returns the name that a file other than a shard, such as OriginsName, has in the part.
func (p Part) ExtraName(name string) string {
	suffix, ok := partExtras[name]
	if !p.isPart() || !ok {
		return name
	}
	return p.file(suffix)
}

// isPartExtra reports whether ExtraName made a name.
func isPartExtra(name string) bool {
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

// parsePartFile returns the part that a file other than a shard belongs to.
func parsePartFile(name string) (part int, ok bool) {
	m := partFilePattern().FindStringSubmatch(name)
	if m == nil {
		return 0, false
	}
	part, _ = strconv.Atoi(m[1])
	return part, true
}

// IsPartManifest reports whether a name is that of a part's own manifest.
func IsPartManifest(name string) bool {
	part, ok := parsePartFile(name)
	return ok && name == Part{part, MaxParts}.ManifestName()
}

// ofPart returns the part whose builder made a file of this name.
func ofPart(name string) (part int, ok bool) {
	if n, ok := parsePartName(name); ok {
		return n.part, true
	}
	return parsePartFile(name)
}

// isMergedFile reports whether a name is of a file that a merge makes, or of its lock.
func isMergedFile(name string) bool {
	switch name {
	case ManifestName, lockName, additionCheckpointName, OriginsName, ValOriginsName, HeldOutName, RunName, RejectsName:
		return true
	}
	return isNumberedName(name) || isListName(name) || isTokenizerName(name)
}
