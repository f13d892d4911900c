import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { runCli } from '../src/run-cli.ts';

/** The program as it is run: its sources, with a Node that reads TypeScript. */
export const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));

export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** A run of `locks` that a test may hurt. */
export class Program {
  readonly child: ChildProcess;
  readonly outcome: Promise<Outcome>;

  /** @param url - `undefined`: no URL is set */
  constructor(
    args: readonly string[],
    url: string | undefined,
    stdin = '',
    env: Readonly<Record<string, string>> = {},
  ) {
    const { LOCKS_URL: _, ...variables } = process.env;
    this.child = spawn(process.execPath, [MAIN, ...args], {
      env: { ...variables, ...(url !== undefined && { LOCKS_URL: url }), ...env },
    });
    this.outcome = this.#collect(stdin);
  }

  async #collect(stdin: string): Promise<Outcome> {
    const { child } = this;
    const text = { stdout: '', stderr: '' };
    child.stdout?.on('data', (chunk) => (text.stdout += String(chunk)));
    child.stderr?.on('data', (chunk) => (text.stderr += String(chunk)));
    child.stdin?.end(stdin);
    const [code, signal] = (await once(child, 'exit')) as [number | null, string | null];
    await readWhatIsWritten();
    return { ...text, code: code ?? Number.NaN, ...(signal === null ? {} : { signal }) };
  }
}

/**
 * The pipes of a process that has ended may have text that nobody has read yet, and a command that it left behind may keep them open,
 * so that no `close` comes. Between two turns of the event loop Node reads what is there.
 */
async function readWhatIsWritten(): Promise<void> {
  await setImmediate();
  await setImmediate();
}

export async function locks(url: string, ...args: string[]): Promise<Outcome> {
  return new Program(args, url).outcome;
}

/** The command without a process of its own: for what does not depend on one. */
export async function locksHere(url: string, ...args: string[]): Promise<Outcome> {
  const text = { stdout: '', stderr: '' };
  const code = await runCli(args, {
    url,
    write: (chunk) => (text.stdout += chunk),
    say: (message) => (text.stderr += `locks: ${message}\n`),
  });
  return { ...text, code };
}

/** A folder in which commands leave what tests wait for. */
export function folder(): string {
  return mkdtempSync(join(tmpdir(), 'locks-cli-'));
}

export function textIn(file: string): string {
  return existsSync(file) ? readFileSync(file, 'utf8') : '';
}

/** The process id that a command wrote into a file. */
export function pidIn(file: string): number | undefined {
  return Number(textIn(file)) || undefined;
}

/** Whether the process runs; one that has ended and is not yet reaped does not. */
export function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'latin1'));
  } catch {
    return false;
  }
}
