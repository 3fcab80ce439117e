package textcache

import (
	"fmt"
	"os"

	"github.com/dsload/dsload/internal/private"
)

// discardDamage removes the folder of an entry that was taken if it is damaged. It reports whether
// the entry has to be taken again.
func (c *Cache) discardDamage(e *Entry) (again bool, err error) {
	damage := private.Entry(e.Dir)
	if damage == nil && c.Damage != nil {
		damage = c.Damage(e.Dir, e.Ready)
	}
	if damage == nil {
		return false, nil
	}
	if !e.Ready {
		return false, os.RemoveAll(e.Dir) // this process holds the lock exclusively
	}
	if err := e.Close(); err != nil {
		return false, err
	}
	removed, err := remove(e.Dir)
	switch {
	case err != nil:
		return false, fmt.Errorf("%w; remove its folder, which failed here: %w", damage, err)
	case !removed && isReady(e.Dir):
		return false, fmt.Errorf("%w; other processes use this folder of the cache: "+
			"once they have ended, run the same command again", damage)
	}
	e.Damage = damage
	return true, nil
}
