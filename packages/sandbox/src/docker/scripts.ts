/** Put into every container by the engine (`Init: true`). With `-s` it becomes the parent of orphans below it. */
const subreaper = ['/sbin/docker-init', '-s', '--'] as const;

/**
 * Runs the command as one stream of output; then ends what it left behind. Orphans, also those that took a session of
 * their own, have become children of the subreaper, so they are found by reading its list. Only what the shell itself
 * can do: no program is started. A killed process is there until a busy machine has let it run once more, so the looks
 * go on for twenty seconds; one that does not die, because a disk does not answer, is left to the end of the turn.
 */
const launch = `
exec 2>/dev/null
( exec "$@" 2>&1 )
code=$?
round=0
now=0
end=
while :; do
  round=$((round + 1))
  if [ $((round % 1000)) = 0 ]; then
    { read -r now rest < /proc/uptime; } 2>/dev/null || now=$((now + 1))
    now=\${now%%.*}
    [ "$now" -lt "\${end:=$((now + 20))}" ] || break
  fi
  children=
  { read -r children < "/proc/$PPID/task/$PPID/children"; } 2>/dev/null
  others=
  for child in $children; do [ "$child" = $$ ] || others="$others $child"; done
  [ -n "$others" ] || break
  kill -KILL $others 2>/dev/null
done
exit $code`;

/**
 * Ends every process of the container but its own two and those of the commands named by the arguments: also what hid
 * from its command. A process belongs to a command when the topmost above it (an exec: its parent is outside) carries
 * that command's tag. Stopped first, so that nothing multiplies while it is being counted. 0: nothing was left at the
 * last look.
 */
const sweep = `
kept=" $* "
rootOf() {
  root=$1
  while eval "up=\\\${parent_$root:-0}"; [ "$up" -gt 1 ]; do root=$up; done
  [ "$up" = 0 ] || root=1
}
isKept() {
  [ "$1" = "$own" ] && return 0
  line=
  { read -r line < "/proc/$1/cmdline"; } 2>/dev/null
  for tag in $kept; do case $line in *"$tag"*) return 0 ;; esac; done
  return 1
}
round=0
while [ $round -lt 100 ]; do
  round=$((round + 1))
  pids=
  first=
  for folder in /proc/[0-9]*; do
    stat=
    { read -r stat < "$folder/stat"; } 2>/dev/null || continue
    pid=\${folder#/proc/}
    set -- \${stat##*) }
    eval "parent_$pid=$2"
    [ "$1" = Z ] && continue
    if [ "$2" = 1 ] && { [ -z "$first" ] || [ "\${20}" -lt "$firstStart" ]; }; then first=$pid firstStart=\${20}; fi
    pids="$pids $pid"
  done
  rootOf $$
  own=$root
  victims=
  for pid in $pids; do
    [ "$pid" = 1 ] && continue
    [ "$pid" = "$first" ] && continue
    rootOf "$pid"
    if [ "$root" != 1 ]; then isKept "$root" && continue; fi
    victims="$victims $pid"
  done
  [ -n "$victims" ] || exit 0
  kill -STOP $victims 2>/dev/null
  kill -KILL $victims 2>/dev/null
done
exit 1`;

const countKills = `
for file in /sys/fs/cgroup/memory/memory.oom_control /sys/fs/cgroup/memory.events; do
  { while read -r name count; do [ "$name" = oom_kill ] && echo "$count"; done < "$file"; } 2>/dev/null
done
exit 0`;

/** The tag stands in the first line of the process's command line: the search reads only that line. */
export function buildLaunch(tag: string, argv: readonly string[]): string[] {
  return [...subreaper, '/bin/sh', '-c', `: ${tag}${launch}`, 'sh', ...argv];
}

export function sweepBut(tags: readonly string[]): string[] {
  return ['/bin/sh', '-c', sweep, 'sh', ...tags];
}

/** Writes how many processes the kernel has killed for lack of memory. */
export function countOfMemoryKills(): string[] {
  return ['/bin/sh', '-c', countKills];
}
