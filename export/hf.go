package export

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"

	"github.com/dsload/dsload/internal/arrowipc"
)

// hfFileBytes is the size at which a file of the hf export ends, the same as in datasets.
const hfFileBytes = 500_000_000

// hfSink writes OUT/hf/SPLIT, or OUT/trl/SPLIT, as datasets.save_to_disk does: Arrow streams, state.json and
// dataset_info.json.
type hfSink struct {
	format   string
	width    int // bytes of an id
	dir      string
	split    string
	seal     string
	features map[string]any
	schema   []byte // the message that begins a file
	columns  *columns
	document int64
	tokens   int // the document's
	out      *file
	bytes    int64 // in the open file
	files    int
}

func newHFSink(out, format, split, seal string, of []column) (*hfSink, error) {
	s := &hfSink{format: format, width: of[0].width, dir: filepath.Join(out, format, split), split: split, seal: seal,
		features: map[string]any{}, columns: newColumns(of)}
	types := map[int]string{0: "bool", 2: "uint16", 4: "int32"}
	for _, c := range of { // in the terms of datasets
		s.features[c.name] = map[string]any{"feature": map[string]any{"dtype": types[c.width], "_type": "Value"}, "_type": "List"}
	}
	features, err := json.Marshal(map[string]any{"info": map[string]any{"features": s.features}})
	if err != nil {
		return nil, err
	}
	s.schema = arrowipc.AppendSchema(nil, s.columns.fields, [][2]string{{"huggingface", string(features)}})
	// The names of an earlier export's data files hold their number.
	if err := removeMatching(out, path.Join(format, split, hfAnyData)); err != nil {
		return nil, err
	}
	return s, makeFolders(out, format, split)
}

func (s *hfSink) begin(number int64) { s.document, s.tokens = number, 0 }

func (s *hfSink) ids(raw []byte, extras *rowExtras) error {
	if s.tokens += len(raw) / s.width; s.tokens > MaxRowTokens {
		return longRow(s.format, s.document)
	}
	s.columns.add(raw, extras)
	s.bytes += int64(len(raw))
	if extras != nil {
		s.bytes += int64(len(extras.labels) + len(extras.mask)/8)
	}
	return nil
}

func (s *hfSink) end() error {
	if !s.columns.endRow() {
		return nil
	}
	return s.flush()
}

// flush writes the batch, and closes the file if it is large enough.
func (s *hfSink) flush() error {
	if s.columns.rows == 0 {
		return nil
	}
	if s.out == nil {
		var err error
		// With create's suffix this is the name that renameAll expects.
		if s.out, err = create(filepath.Join(s.dir, hfShardName(s.files))); err != nil {
			return err
		}
		s.files++
		s.out.Write(s.schema)
	}
	s.columns.writeTo(s.out)
	if s.bytes < hfFileBytes {
		return nil
	}
	return s.closeFile()
}

func (s *hfSink) closeFile() error {
	if s.out == nil {
		return nil
	}
	s.out.WriteString(arrowipc.EndOfStream)
	err := s.out.commit()
	s.out, s.bytes = nil, 0
	return err
}

func (s *hfSink) finish() error {
	err := s.flush()
	if err == nil {
		err = s.closeFile()
	}
	if err != nil {
		return err
	}
	type dataFile struct {
		Filename string `json:"filename"`
	}
	files := []dataFile{}
	for i := range s.files {
		name := hfDataName(i, s.files)
		if err := os.Rename(filepath.Join(s.dir, hfShardName(i)), filepath.Join(s.dir, name)); err != nil {
			return err
		}
		files = append(files, dataFile{name})
	}
	state := map[string]any{
		"_data_files": files, "_fingerprint": s.seal[:16], "_format_columns": nil, "_format_kwargs": map[string]any{},
		"_format_type": nil, "_output_all_columns": false, "_split": s.split,
	}
	info := map[string]any{"citation": "", "description": "", "homepage": "", "license": "",
		"features": s.features}
	if err := writeJSON(filepath.Join(s.dir, hfStateName), state); err != nil {
		return err
	}
	if err := writeJSON(filepath.Join(s.dir, hfInfoName), info); err != nil {
		return err
	}
	return syncFolder(s.dir)
}

func (s *hfSink) discard() {
	if s.out != nil {
		s.out.discard()
	}
}

// writeHFSplits writes dataset_dict.json, so that load_from_disk reads the folder as a whole.
func writeHFSplits(folder string, splits []string) error {
	data, err := json.Marshal(map[string]any{"splits": splits})
	if err != nil {
		return err
	}
	if err := writeFile(filepath.Join(folder, hfSplitsName), data); err != nil {
		return err
	}
	return syncFolder(folder)
}
