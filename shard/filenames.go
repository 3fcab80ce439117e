package shard

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// This file makes every name that dsload puts into a dataset folder.
const (
	ManifestName  = "manifest.json"
	TokenizerName = "tokenizer.json"
	RunName       = "run.json"
	RejectsName   = "rejects.jsonl"
	// OriginsName maps documents to the records they came from (package origins). If the split val
	// has its own sources, ValOriginsName does so for its documents.
	OriginsName    = "origins.bin"
	ValOriginsName = "origins-val.bin"
	// HeldOutName has the hashes of the documents that were held out for the split val: 64 bits
	// each, ascending.
	HeldOutName = "held-out.bin"

	// OriginsSuffix is the suffix of these files while the build is unfinished.
	OriginsSuffix = ".pages"

	lockName       = "build.lock"
	checkpointName = "build.checkpoint"
	// additionCheckpointName is the checkpoint of an addition to a finished dataset.
	additionCheckpointName = "append.checkpoint"
	seenLogName            = "build.seen"

	shardSuffix = ".arrow"
	tempSuffix  = ".tmp" // of every unfinished file
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

// ShardName returns the file name of the i-th shard of a split, such as "train-00000.arrow".
func ShardName(split string, i int) string {
	return fmt.Sprintf("%s-%05d%s", split, i, shardSuffix)
}

// parseShardName is the inverse of ShardName. The name may end in tempSuffix. ok is false for any
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
	if err != nil || ShardName(s, int(n)) != name {
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
	case strings.HasSuffix(name, partCheckpointSuffix):
		return RoleCheckpoint
	case temp, strings.HasSuffix(name, partLockSuffix):
		return RoleScratch
	}
	return RoleWhole
}

// TokenizerNames returns the names that a dataset's copy of its tokenizer may have: of a
// tokenizer.json, a SentencePiece model, or tiktoken ranks.
func TokenizerNames() []string {
	return []string{TokenizerName, "tokenizer.model", "tokenizer.tiktoken"}
}

const hashesName = "dedup.bin"

// HashesName returns the name of the i-th file of the hashes by which documents were compared: one
// of the build, then one of each addition.
func HashesName(i int) string { return AdditionName(hashesName, i) }

// IsHashes reports whether HashesName made a name.
func IsHashes(name string) bool { return IsAddition(name, hashesName) }

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
	return slices.Contains(TokenizerNames(), name) || isNumberedName(name) || name == HeldOutName || isListName(name)
}

// ignoredName reports whether a name is one that file systems and desktops leave in folders.
func ignoredName(name string) bool { return strings.HasPrefix(name, ".") || name == "lost+found" }

// validExtraName reports whether WriteFile accepts name: a plain file name that collides with none
// of ours.
func validExtraName(name string) bool {
	if name == RejectsName || name == OriginsName || name == ValOriginsName || name == HeldOutName ||
		isNumberedName(name) || isPartExtra(name) || isListName(name) ||
		slices.Contains(TokenizerNames(), name) {
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
