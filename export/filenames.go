package export

import (
	"fmt"
	"path/filepath"
)

// All file names of an export.
const (
	recordName     = "export.json" // what the folder holds; written first, completed last
	nanoGPTName    = "meta.json"
	hfFolder       = "hf"
	hfSplitsName   = "dataset_dict.json"
	hfStateName    = "state.json"
	hfInfoName     = "dataset_info.json"
	litdataName    = "index.json"
	tmpSuffix      = ".tmp"
	megatronTokens = ".bin"
	megatronIndex  = ".idx"
	nanotronTokens = ".ds"
	olmoTokens     = ".npy"
	olmoBounds     = ".csv.gz"
	jsonlSuffix    = ".jsonl"
	parquetSuffix  = ".parquet"
)

// HFFolder returns the folder that datasets.load_from_disk takes, of an export to out.
func HFFolder(out string) string { return filepath.Join(out, hfFolder) }

func hfDataName(i, n int) string { return fmt.Sprintf("data-%05d-of-%05d.arrow", i, n) }

func hfShardName(i int) string { return fmt.Sprintf("data-%05d.arrow%s", i, tmpSuffix) }

func litdataChunkName(i int) string { return fmt.Sprintf("chunk-0-%d.bin", i) }
