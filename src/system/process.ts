import { readFileSync, readlinkSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { hash } from 'node:crypto'

/** What the system reports about a process that stays the same from its start to its end. */
interface Identity {
  /** The boot of the machine, the namespace of process ids, and the addresses of the machine. */
  machine: string
  pid: number
  /** Clock ticks from the boot to the start of the process. */
  started: string
}

/** A name that no other process has, on this machine or another one. null: the system does not report enough. */
export function identifyProcess(): string | null {
  const own = ownIdentity()
  return own === null ? null : [own.machine, own.pid, own.started].join('/')
}

/**
 * A sidecar was killed and starts again: true if the process that `identity` names certainly does not live any more.
 * False if it lives, if it ran on another machine or in another container, or if nothing is known.
 */
export function isGone(identity: string): boolean {
  const own = ownIdentity()
  const [machine, pid, started] = identity.split('/')
  if (own === null || machine !== own.machine || started === undefined || !/^[1-9]\d*$/.test(pid ?? ''))
    return false
  try {
    process.kill(Number(pid), 0)
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ESRCH'
  }
  const present = startOf(Number(pid))
  return present !== null && present !== started
}

function ownIdentity(): Identity | null {
  const started = startOf(process.pid)
  try {
    // After `unshare --pid`, /proc may still show the process ids of the outer namespace: our id is another process
    // there.
    if (readlinkSync('/proc/self') !== String(process.pid)) return null
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()
    const namespace = readlinkSync('/proc/self/ns/pid')
    // Two virtual machines that were restored from one snapshot have the same boot.
    const addresses = Object.values(networkInterfaces()).flatMap((list) =>
      (list ?? []).filter(({ internal }) => !internal).map(({ mac, address }) => `${mac} ${address}`),
    )
    const machine = hash('sha256', [boot, namespace, ...addresses.toSorted()].join('\n'), 'hex').slice(0, 32)
    return started === null ? null : { machine, pid: process.pid, started }
  } catch {
    return null
  }
}

/** null: there is no such process, or the system does not say. */
function startOf(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second field is the name of the program, in parentheses, and may have any characters. The start is field 22.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null
  } catch {
    return null
  }
}
