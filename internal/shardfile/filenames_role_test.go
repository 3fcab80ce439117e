package shardfile

import "testing"

// Every name that a build makes has the role by which a bucket keeps it.
func TestRoles(t *testing.T) {
	part := Part{Number: 7, Of: 9}
	for name, want := range map[string]Role{
		ManifestName: RoleWhole, RunName: RoleWhole, PlanName: RoleWhole, OriginsName: RoleWhole,
		HashesName(1):       RoleWhole,
		part.ManifestName(): RoleWhole, part.ExtraName(HashesName(0)): RoleWhole,
		ShardName("train", 3): RoleWhole, PartName{Split: 1, Part: part.Number, Index: 3, Cut: true}.String(): RoleWhole,
		TempName(ShardName("train", 3)): RoleGrowing, TempName(part.ShardName("val", 3)): RoleGrowing,
		OriginsName + OriginsSuffix: RoleGrowing, part.ExtraName(ValOriginsName) + OriginsSuffix: RoleGrowing,
		SeenLogName:                  RoleChanging,
		CheckpointName(Part{}, true): RoleCheckpoint, CheckpointName(Part{}, false): RoleCheckpoint,
		CheckpointName(part, false): RoleCheckpoint,
		LockName:                    RoleScratch, part.LockName(): RoleScratch, part.PlanTempName(): RoleScratch,
		SeenLogName + TempSuffix: RoleScratch, BuildCheckpointName + TempSuffix: RoleScratch,
		ManifestName + TempSuffix: RoleScratch,
	} {
		if got := RoleOf(name); got != want {
			t.Errorf("%s: role %d, want %d", name, got, want)
		}
		if !OwnName(name) {
			t.Errorf("%s: no build makes it", name)
		}
	}
	for name, want := range map[string]bool{ShardName("train", 3): true, PartName{Split: 1, Part: part.Number, Index: 3, Cut: true}.String(): true,
		TempName(ShardName("train", 3)): false, ManifestName: false, "other.arrow": false} {
		if IsShard(name) != want {
			t.Errorf("%s: a shard is %v", name, !want)
		}
	}
	for name, want := range map[string]bool{part.ManifestName(): true, part.CheckpointName(): false,
		ManifestName:                     false,
		part.ManifestName() + TempSuffix: false} {
		if IsPartManifest(name) != want {
			t.Errorf("%s: a manifest of a part is %v", name, !want)
		}
	}
}
