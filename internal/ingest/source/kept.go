package source

import (
	"sync"
)

// A keeper holds small files that detection has read whole, until they are read. A folder of them is then read once
// instead of twice.
type keeper struct {
	mu    sync.Mutex
	bytes int64
	files map[int][]byte // the keys are the numbers of the inputs
}

// take returns the i-th input if it was kept, and keeps it no longer.
func (k *keeper) take(i int) []byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	data := k.files[i]
	delete(k.files, i)
	return data
}
