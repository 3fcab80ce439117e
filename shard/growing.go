package shard

import (
	"errors"
	"io/fs"
	"os"
)

// OpenUnfinished opens the rows of a build that has not finished: those that its last checkpoint made
// durable, except the few that no record batch holds yet. These rows never change, whatever becomes
// of the build; a later checkpoint has more. Max is the maximum number of shards: the error is
// ErrShardList if there are more.
//
// The manifest of the Dataset is one as if the build had ended, with the given tokenizer, without
// sources, counters, files and seal. Its lengths may be those of rows to come. The error is
// ErrNotFound if there is no checkpoint.
func (o ReaderOptions) OpenUnfinished(fsys FS, dir string, t TokenizerInfo, max int) (*Dataset, error) {
	r, st, err := openUnfinishedHead(fsys, dir)
	if err != nil {
		return nil, err
	}
	defer r.f.Close()
	if st.begun {
		if err := r.splits(st, dir, BuilderOptions{MaxShards: max}, false); err != nil {
			return nil, err
		}
	}
	m := &Manifest{Format: "dsload", Version: FormatVersion, Schema: st.opts.Schema, Settings: st.opts.Settings,
		Tokenizer: t, Counters: map[string]int64{}}
	var open []*savedSplit
	for i := range st.splits {
		s := &st.splits[i]
		if info := s.durable(); info.Examples > 0 {
			m.Splits, open = append(m.Splits, info), append(open, s)
		}
	}
	d, err := o.newDataset(fsys, dir, m)
	if err != nil {
		return nil, err
	}
	d.building = true
	for i, r := range d.splits {
		if open[i].hasOpen && len(open[i].openBlocks) > 0 {
			r.states.get(r.states.n - 1).blocks = open[i].openBlocks
		}
	}
	return d, nil
}

// StatUnfinished describes the checkpoint file of a build, which each checkpoint replaces. The error
// is fs.ErrNotExist before the first, and after the end of the build.
func StatUnfinished(fsys FS, dir string) (fs.FileInfo, error) {
	return fsys.Stat(Join(dir, checkpointName))
}

// durable returns the entry that a manifest would have for the rows in record batches.
func (s *savedSplit) durable() SplitInfo {
	info := s.stats.info()
	info.Name, info.Examples, info.Tokens, info.Lengths = s.name, 0, 0, nil
	for j := range s.shards {
		info.Shards = append(info.Shards, s.shards[j].info(s.name, Part{}, j))
	}
	if s.hasOpen && len(s.openBlocks) > 0 {
		open := ShardInfo{Name: Part{}.ShardName(s.name, len(s.shards)), Tokens: s.openTokens, Bytes: s.openPos}
		for _, k := range s.openBlocks {
			open.Rows += int64(k.rows)
		}
		info.Shards = append(info.Shards, open)
	}
	for j := range info.Shards {
		info.Examples += info.Shards[j].Rows
		info.Tokens += info.Shards[j].Tokens
	}
	return info
}

// openUnfinished opens a shard that was being written: under its temporary name, or under its own
// where it was ended since.
func openUnfinished(fsys FS, path string) (File, error) {
	f, err := fsys.OpenFile(path+tempSuffix, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return openForReading(fsys, path)
	}
	return f, err
}

// adoptUnfinished sets the index of a shard that was being written from the checkpoint. Record
// batches that were written later are not part of it.
func (r *SplitReader) adoptUnfinished(s *readShard, f File, path string, info *ShardInfo) error {
	size, err := fileSize(f)
	if err != nil {
		return err
	}
	if size < info.Bytes {
		return truncated(path, size, info.Bytes)
	}
	s.index, s.values = r.d.layout.indexOf(s.blocks), newBatchValues(r.d.layout, len(s.blocks))
	s.checked.reset(len(s.blocks))
	return nil
}
