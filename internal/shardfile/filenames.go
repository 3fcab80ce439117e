package shardfile

import (
	"fmt"
	"slices"
	"strings"
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

	LockName            = "build.lock"
	BuildCheckpointName = "build.checkpoint"
	// AdditionCheckpointName is the checkpoint of an addition to a finished dataset.
	AdditionCheckpointName = "append.checkpoint"
	SeenLogName            = "build.seen"

	shardSuffix = ".arrow"
	TempSuffix  = ".tmp" // ends every unfinished file
	cutSuffix   = "-cut" // marks a shard that ends where a budget of the whole build does

	partPrefix       = "part-"
	manifestSuffix   = ".json" // for a part, like all below
	checkpointSuffix = ".checkpoint"
	lockSuffix       = ".lock"
	planSuffix       = ".plan" // before it is renamed to PlanName
)

// MaxShardIndex keeps shard names sorted: with six digits they would not be.
const MaxShardIndex = 99_999

// The splits a dataset may have, in the order of manifests and checkpoints.
var SplitNames = [...]string{"train", "val"}

const NumSplits = len(SplitNames)

// SplitIndex returns the index of a split, or -1 for an unknown name.
func SplitIndex(name string) int { return slices.Index(SplitNames[:], name) }

// ShardName returns the file name of the i-th shard of a split, such as "train-00000.arrow".
func ShardName(split string, i int) string {
	return fmt.Sprintf("%s-%05d%s", split, i, shardSuffix)
}

// ParseShardName is the inverse of ShardName. The name may end in TempSuffix. ok is false for any
// other name.
func ParseShardName(name string) (split, index int, temp, ok bool) {
	name, temp = strings.CutSuffix(name, TempSuffix)
	base, found := strings.CutSuffix(name, shardSuffix)
	s, digits, _ := strings.Cut(base, "-")
	if split = SplitIndex(s); found && split >= 0 && len(digits) == 5 {
		index, ok = parseDigits(digits)
	}
	if !ok {
		return 0, 0, false, false
	}
	return split, index, temp, true
}

// IsShard reports whether a name is that of a finished shard.
func IsShard(name string) bool {
	_, _, temp, whole := ParseShardName(name)
	n, ofPart := ParsePartName(name)
	return whole && !temp || ofPart && !n.Temp
}

// TempName returns the name of a shard while it is unfinished.
func TempName(shard string) string { return shard + TempSuffix }

// CheckpointName returns the name of the checkpoint of a build, or of an addition to a dataset.
func CheckpointName(part Part, adds bool) string {
	if adds {
		return AdditionCheckpointName
	}
	return part.CheckpointName()
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
	base, temp := strings.CutSuffix(name, TempSuffix)
	switch {
	case temp && strings.HasSuffix(base, shardSuffix), strings.HasSuffix(name, OriginsSuffix):
		return RoleGrowing
	case name == SeenLogName:
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

func IsListName(name string) bool {
	split, found := strings.CutPrefix(name, "shards-")
	split, ends := strings.CutSuffix(split, ".bin")
	return found && ends && SplitIndex(split) >= 0
}

// isNumberedName reports whether a name is that of a file of hashes or of an addition.
func isNumberedName(name string) bool {
	return IsAddition(name, hashesName) || IsAddition(name, RejectsName) || IsAddition(name, OriginsName)
}

// OwnName reports whether a build may have made a file of this name, and so may remove it.
func OwnName(name string) bool {
	if _, _, _, ok := ParseShardName(name); ok {
		return true
	}
	if _, ok := OfPart(name); ok {
		return true
	}
	switch strings.TrimSuffix(name, TempSuffix) {
	case ManifestName, RunName, RejectsName, LockName, BuildCheckpointName, AdditionCheckpointName, SeenLogName, PlanName,
		OriginsName, ValOriginsName, OriginsName + OriginsSuffix, ValOriginsName + OriginsSuffix:
		return true
	}
	name = strings.TrimSuffix(name, TempSuffix)
	return isTokenizerName(name) || isNumberedName(name) || name == HeldOutName || IsListName(name)
}

// IgnoredName reports whether a name is one that file systems and desktops leave in folders.
func IgnoredName(name string) bool { return strings.HasPrefix(name, ".") || name == "lost+found" }

// ValidExtraName reports whether WriteFile accepts name: a plain file name that collides with none
// of ours.
func ValidExtraName(name string) bool {
	if name == RejectsName || name == OriginsName || name == ValOriginsName || name == HeldOutName ||
		isNumberedName(name) || IsPartExtra(name) || IsListName(name) ||
		isTokenizerName(name) {
		return true
	}
	if name == "" || len(name) > 255 || name[0] == '.' || OwnName(name) || strings.HasSuffix(name, TempSuffix) ||
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

// MaxRunBytes limits the size of run.json.
const MaxRunBytes = 1 << 20
