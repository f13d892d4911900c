import { generateKeyPairSync } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { request } from 'node:https';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import type { EtcdServer } from '../etcd/etcd-server.ts';
import { findServer } from '../find-server.mjs';
import { ManagedServer, type ServerLocation } from '../managed-server.ts';

/** The token of an administrator. */
export const ADMIN_TOKEN = 'token-of-the-administrator';

/** What a client needs to reach an API server: the parts of a kubeconfig. */
export interface KubernetesAccess {
  /** `https://127.0.0.1:6443` */
  readonly url: string;
  /** The certificate that the server shows, as PEM. */
  readonly certificate: string;
  /** @defaultValue that of an administrator */
  readonly token: string;
}

/**
 * A private API server of Kubernetes on loopback, which keeps its objects in an etcd of its own. There are no nodes and no
 * controllers: nothing runs a pod, and nothing deletes what belongs to a deleted namespace.
 */
export class KubernetesApiServer extends ManagedServer {
  protected readonly title = 'kube-apiserver';
  readonly etcd: EtcdServer;
  readonly #users: readonly string[];
  readonly #args: readonly string[];

  constructor(location: ServerLocation, etcd: EtcdServer, users: readonly string[], args: readonly string[]) {
    super(location);
    this.etcd = etcd;
    this.#users = users;
    this.#args = args;
  }

  get url(): string {
    return `https://${this.host}:${this.port}`;
  }

  /** How a user whom `startKubernetes` was given reaches it; without a name, an administrator. */
  async access(user?: string): Promise<KubernetesAccess> {
    const token = user === undefined ? ADMIN_TOKEN : tokenOf(user);
    return {
      url: this.url,
      certificate: await readFile(this.#in('certificates/apiserver.crt'), 'utf8'),
      token,
    };
  }

  /** Sends a request of the administrator. @returns the answer, parsed; one that is no success rejects */
  async ask<T = unknown>(method: string, at: string, body?: unknown): Promise<T> {
    const response = await new Promise<import('node:http').IncomingMessage>((resolve, reject) => {
      const sent = request(
        new URL(at, this.url),
        {
          method,
          // The certificate is made at the first start, which this may be waiting for.
          rejectUnauthorized: false,
          headers: { authorization: `Bearer ${ADMIN_TOKEN}`, 'content-type': 'application/json' },
          timeout: 5_000,
        },
        resolve,
      );
      sent.once('timeout', () => sent.destroy(new Error('no answer within 5 s')));
      sent.once('error', reject);
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });
    const answer = await text(response);
    if (response.statusCode === undefined || response.statusCode >= 300)
      throw new Error(`${method} ${at}: ${response.statusCode} ${answer}`);
    return (answer.startsWith('{') ? JSON.parse(answer) : answer) as T;
  }

  /** Stops etcd as well. */
  override async stop(): Promise<void> {
    await super.stop();
    await this.etcd.stop();
  }

  protected override async prepare(): Promise<void> {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
    await writeFile(this.#in('account.key'), privateKey.export({ format: 'pem', type: 'sec1' }));
    const users = this.#users.map((user) => `${tokenOf(user)},${user},${user}`);
    await writeFile(
      this.#in('tokens.csv'),
      [`${ADMIN_TOKEN},administrator,administrator,"system:masters"`, ...users, ''].join('\n'),
    );
  }

  protected override program() {
    const options: Readonly<Record<string, string>> = {
      'bind-address': this.host,
      'secure-port': String(this.port),
      'etcd-servers': this.etcd.url,
      'cert-dir': this.#in('certificates'),
      'token-auth-file': this.#in('tokens.csv'),
      'authorization-mode': 'RBAC',
      'service-account-issuer': 'https://kubernetes.default.svc',
      'service-account-signing-key-file': this.#in('account.key'),
      'service-account-key-file': this.#in('account.key'),
      'service-cluster-ip-range': '10.0.0.0/24',
      'endpoint-reconciler-type': 'none',
      v: '0',
    };
    const flags = Object.entries(options).map(([name, value]) => `--${name}=${value}`);
    return { command: findServer('kube-apiserver'), args: [...flags, ...this.#args] };
  }

  protected override async isReady(): Promise<boolean> {
    try {
      await this.ask('GET', '/readyz');
      // The namespaces that each cluster has are made a moment later.
      await this.ask('GET', '/api/v1/namespaces/default');
      return true;
    } catch {
      return false;
    }
  }

  #in(file: string): string {
    return path.join(this.dir, file);
  }
}

function tokenOf(user: string): string {
  return `token-of-${user}`;
}
