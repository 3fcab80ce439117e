package export

import (
	"fmt"
	"path"
)

// All file names of an export.
const (
	recordName      = "export.json" // what the folder holds; written first, completed last
	lockName        = "export.lock" // there while an export runs
	nanoGPTName     = "meta.json"
	hfSplitsName    = "dataset_dict.json"
	hfStateName     = "state.json"
	hfInfoName      = "dataset_info.json"
	litdataName     = "index.json"
	hfAnyData       = "data-*.arrow*"
	litdataAnyChunk = "chunk-0-*.bin"
	tmpSuffix       = ".tmp"
	megatronTokens  = ".bin"
	megatronIndex   = ".idx"
	nanotronTokens  = ".ds"
	olmoTokens      = ".npy"
	olmoBounds      = ".csv.gz"
	olmoMask        = ".label_mask"
	nanotronMask    = ".ds.loss"
	nanotronEnds    = ".ds.index"
	nanotronMeta    = ".ds.metadata"
	jsonlSuffix     = ".jsonl"
	parquetSuffix   = ".parquet"
)

func hfDataName(i, n int) string { return fmt.Sprintf("data-%05d-of-%05d.arrow", i, n) }

func hfShardName(i int) string { return fmt.Sprintf("data-%05d.arrow%s", i, tmpSuffix) }

func litdataChunkName(i int) string { return fmt.Sprintf("chunk-0-%d.bin", i) }

// suffixes maps the formats whose files lie beside each other to how the names of a split's end.
var suffixes = map[string][]string{
	Megatron: {megatronTokens, megatronIndex},
	NanoGPT:  {megatronTokens},
	Nanotron: {nanotronTokens, nanotronEnds, nanotronMeta, nanotronMask},
	OLMo:     {olmoTokens, olmoBounds, olmoMask},
	JSONL:    {jsonlSuffix},
	Parquet:  {parquetSuffix},
}

// owned returns patterns of all names in an export's folder that a format has for a split, with slashes.
func owned(format, split string) (patterns []string) {
	switch format {
	case HF, TRL:
		dir := path.Join(format, split)
		return []string{path.Join(dir, hfAnyData), path.Join(dir, hfStateName), path.Join(dir, hfInfoName)}
	case LitData:
		return []string{path.Join(split, litdataAnyChunk), path.Join(split, litdataName)}
	}
	for _, suffix := range suffixes[format] {
		patterns = append(patterns, split+suffix)
	}
	return patterns
}
