#!/bin/busybox sh
# shellcheck shell=dash
# First process of the guest. Its root becomes the host's root, read-only: same interpreter, same packages, same
# checkout. Only /run (in memory) and /run/share (a folder of the host) can be written.
# ttyS0 is the console; ttyS1 is standard input and output of the program, which /run/share/program starts.
/bin/busybox mkdir -p /proc /dev /host
b=/bin/busybox
$b mount -t devtmpfs dev /dev
while read -r module; do
    $b insmod "/modules/$module.ko" || echo "guest: the module $module cannot be loaded"
done </modules/order
$b ip link set lo up
share() {
    $b mount -t 9p -o "trans=virtio,version=9p2000.L,msize=262144,$2" "$1" "$3" || echo "guest: no share $1"
}
share host ro,cache=loose /host
$b mount -t proc proc /host/proc
$b mount -t sysfs sys /host/sys
$b mount -t devtmpfs dev /host/dev
$b mount -t tmpfs tmp /host/run
$b mkdir /host/run/share /host/run/tmp
share share cache=none /host/run/share
$b stty -F /dev/ttyS1 raw -echo 115200
export HOME=/run TMPDIR=/run/tmp PYTHONDONTWRITEBYTECODE=1
$b chroot /host /bin/sh /run/share/program </dev/ttyS1 >/dev/ttyS1 2>/dev/console
echo $? >/host/run/share/status
$b umount /host/run/share
$b poweroff -f
