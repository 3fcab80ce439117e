package build

import (
	"context"
	"errors"

	"github.com/dsload/dsload/shard"
)

// A straggler may still upload files of a part that a twin has built, after a merge. Its shards are
// those of the dataset, byte for byte, except for the ones that a budget removed.

// errOvertaken ends the build of a part whose dataset has been merged meanwhile.
var errOvertaken = errors.New("the parts are merged")

// commitShared uploads a file into the folder of all parts, unless the parts are merged. If they are
// merged while it is uploaded, it removes what the dataset does not have.
func (p *partBucket) commitShared(path, name string) error {
	if merged, err := p.exists(shard.ManifestName); err != nil {
		return err
	} else if merged {
		return errOvertaken
	}
	if err := p.home.commit(path); err != nil {
		return err
	}
	if there, err := p.exists(shard.ManifestName); err != nil || !there {
		return err
	}
	merged, has, err := shard.InMerged(p, p.dir, p.plan, name)
	if err != nil || !merged {
		return err
	}
	if !has {
		err = p.home.removeObject(context.Background(), name)
	}
	return errors.Join(errOvertaken, err)
}
