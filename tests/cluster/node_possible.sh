#!/bin/sh
# Says whether this machine lets us run a node: exit 0, or 1 and the reason on standard output.
[ "$(id -u)" = 0 ] || { echo "only root can run a node"; exit 1; }
folder=$(mktemp -d)
trap 'umount "$folder" 2>/dev/null; rmdir "$folder" 2>/dev/null' EXIT
mount -t tmpfs tmpfs "$folder" 2>/dev/null || { echo "this machine forbids mounts"; exit 1; }
for groups in /sys/fs/cgroup/memory /sys/fs/cgroup; do
    [ -d "$groups" ] || continue
    mkdir "$groups/nodeagent-possible" 2>/dev/null && { rmdir "$groups/nodeagent-possible"; exit 0; }
    break
done
echo "this machine lets nobody make control groups"
exit 1
