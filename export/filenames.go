package export

import "fmt"

// All file names of an export.
const (
	recordName     = "export.json" // what the folder holds; written first, completed last
	nanoGPTName    = "meta.json"
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
	olmoMask       = ".label_mask"
	nanotronMask   = ".ds.loss"
	jsonlSuffix    = ".jsonl"
	parquetSuffix  = ".parquet"
)

func hfDataName(i, n int) string { return fmt.Sprintf("data-%05d-of-%05d.arrow", i, n) }

func hfShardName(i int) string { return fmt.Sprintf("data-%05d.arrow%s", i, tmpSuffix) }

func litdataChunkName(i int) string { return fmt.Sprintf("chunk-0-%d.bin", i) }
