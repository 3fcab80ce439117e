package stats

// The settings of the padding figures. Each bucket but 0 and each batch size divides segmentRows.
var (
	batchSizes = []int{8, 16, 32, 64, 128}
	buckets    = []int{0, 512, 2048, 8192, 32768}
)

const (
	advisedBatch = 32   // the default batch size of a server
	nearBest     = 0.02 // a larger bucket is advised only if it saves more than this share
)

// padding computes the waste of each batch size and bucket from the lengths of the rows that plan
// chose. Of the buckets of all rows or more it reports only the smallest.
func padding(rows int64, segments []segment, lengths []int32) ([]Padding, error) {
	var out []Padding
	for i, bucket := range buckets {
		if i > 1 && int64(bucket) >= rows {
			break
		}
		meters := make([]wasteMeter, len(batchSizes))
		for i, size := range batchSizes {
			meters[i].size = int64(size)
		}
		err := bucketed(rows, segments, lengths, bucket, func(start int64, run []int32) {
			for i := range meters {
				meters[i].add(start, run)
			}
		})
		if err != nil {
			return nil, err
		}
		for i := range meters {
			out = append(out, Padding{BatchSize: batchSizes[i], Bucket: bucket, Waste: meters[i].waste()})
		}
	}
	return out, nil
}

// wasteMeter adds up the padding of batches of one size.
type wasteMeter struct {
	size           int64
	longest, rows  int64 // the open batch's
	tokens, padded int64
}

// add adds consecutive rows of the order; start is the position of the first within its epoch. A
// batch ends at each multiple of the size; the last one of an epoch may be short.
func (m *wasteMeter) add(start int64, lengths []int32) {
	left := m.size - start%m.size // rows until the batch is full
	if left == m.size {
		m.close()
	}
	for _, n := range lengths {
		m.longest = max(m.longest, int64(n))
		m.tokens += int64(n)
		m.rows++
		if left--; left == 0 {
			m.close()
			left = m.size
		}
	}
}

func (m *wasteMeter) close() {
	m.padded += m.longest * m.rows
	m.longest, m.rows = 0, 0
}

func (m *wasteMeter) waste() float64 {
	m.close()
	if m.padded == 0 {
		return 0
	}
	return 1 - float64(m.tokens)/float64(m.padded)
}

// advise picks the setting for a batch size: the smallest bucket that is nearly the best.
func advise(figures []Padding, batch int) Advice {
	a := Advice{BatchSize: batch}
	least := 1.0
	for _, p := range figures {
		if p.BatchSize == batch {
			least = min(least, p.Waste)
		}
	}
	for _, p := range figures { // buckets ascend
		if p.BatchSize != batch {
			continue
		}
		if p.Bucket == 0 {
			a.Without = p.Waste
		}
		if p.Waste <= least+nearBest {
			a.Bucket, a.Waste = p.Bucket, p.Waste
			break
		}
	}
	return a
}
