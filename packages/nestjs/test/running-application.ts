import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** The application of test/application, compiled as its users compile theirs: Node does not run decorators. */
export class CompiledApplication implements AsyncDisposable {
  readonly #folder: string;
  readonly #running = new Set<RunningApplication>();

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async compile(): Promise<CompiledApplication> {
    // Below this package, so that imports of it and of its dependencies are resolved.
    const folder = await mkdtemp(here('../dist-application-'));
    const tsc = here('../node_modules/typescript/bin/tsc');
    const args = [tsc, '-p', here('./application'), '--outDir', folder];
    await promisify(execFile)(process.execPath, args);
    return new CompiledApplication(folder);
  }

  async start(env: Readonly<Record<string, string>>, file = 'main.js'): Promise<RunningApplication> {
    const child = spawn(process.execPath, [join(this.#folder, file)], {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const application = new RunningApplication(child);
    this.#running.add(application);
    await application.listening();
    return application;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#running].map((application) => application.kill()));
    await rm(this.#folder, { recursive: true, force: true });
  }
}

export class RunningApplication {
  readonly #child: ChildProcess;
  readonly #exited: Promise<unknown>;
  #url = '';

  constructor(child: ChildProcess) {
    this.#child = child;
    this.#exited = once(child, 'exit');
  }

  /** Until the application has printed its address, or that it is ready. */
  async listening(): Promise<void> {
    const lines = createInterface({ input: this.#child.stdout as NodeJS.ReadableStream });
    const line = once(lines, 'line') as Promise<[string]>;
    const ended = this.#exited.then(() => {
      throw new Error('the application ended before it listened');
    });
    [this.#url] = await Promise.race([line, ended]);
  }

  /** @returns what a POST to this path was answered */
  async post(path: string): Promise<string> {
    const response = await fetch(`${this.#url}/${path}`, { method: 'POST' });
    if (!response.ok) throw new Error(`${path}: ${response.status}: ${await response.text()}`);
    return response.text();
  }

  async health(): Promise<number> {
    return (await fetch(`${this.#url}/health`)).status;
  }

  terminate(): void {
    this.#child.kill('SIGTERM');
  }

  async ended(): Promise<{ code: number | null; signal: string | null }> {
    await this.#exited;
    return { code: this.#child.exitCode, signal: this.#child.signalCode };
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#exited;
  }
}
