package shard

import "testing"

// Every name that a build makes has the role by which a bucket keeps it.
func TestRoles(t *testing.T) {
	part := Part{Number: 7, Of: 9}
	for name, want := range map[string]Role{
		ManifestName: RoleWhole, RunName: RoleWhole, PlanName: RoleWhole, OriginsName: RoleWhole,
		HashesName(1):       RoleWhole,
		part.ManifestName(): RoleWhole, part.ExtraName(HashesName(0)): RoleWhole,
		shardName("train", 3): RoleWhole, part.cutShardName("val", 3): RoleWhole,
		TempName(shardName("train", 3)): RoleGrowing, TempName(part.ShardName("val", 3)): RoleGrowing,
		OriginsName + OriginsSuffix: RoleGrowing, part.ExtraName(ValOriginsName) + OriginsSuffix: RoleGrowing,
		seenLogName:                  RoleChanging,
		CheckpointName(Part{}, true): RoleCheckpoint, CheckpointName(Part{}, false): RoleCheckpoint,
		CheckpointName(part, false): RoleCheckpoint,
		lockName:                    RoleScratch, part.lockName(): RoleScratch, part.PlanTempName(): RoleScratch,
		seenLogName + tempSuffix: RoleScratch, checkpointName + tempSuffix: RoleScratch,
		ManifestName + tempSuffix: RoleScratch,
	} {
		if got := RoleOf(name); got != want {
			t.Errorf("%s: role %d, want %d", name, got, want)
		}
		if !ownName(name) {
			t.Errorf("%s: no build makes it", name)
		}
	}
	for name, want := range map[string]bool{shardName("train", 3): true, part.cutShardName("val", 3): true,
		TempName(shardName("train", 3)): false, ManifestName: false, "other.arrow": false} {
		if IsShard(name) != want {
			t.Errorf("%s: a shard is %v", name, !want)
		}
	}
	for name, want := range map[string]bool{part.ManifestName(): true, part.checkpointName(): false,
		ManifestName:                     false,
		part.ManifestName() + tempSuffix: false} {
		if IsPartManifest(name) != want {
			t.Errorf("%s: a manifest of a part is %v", name, !want)
		}
	}
}
