import type { ServerName } from '../../launcher/servers.mjs';
import type { Outcome } from './step-list.ts';

export interface RehearsalOptions {
  /** With `dist/` of the working tree, npm alone, the running Node, and the upgrade on SQLite and Redis. */
  readonly quick: boolean;
  /** A commit or tag to upgrade from; without it the last release that has a tag, else the sources as they are. */
  readonly before: string | undefined;
  /** Where the software bill of materials is written to. */
  readonly sbom: string | undefined;
  readonly missing: ReadonlySet<ServerName>;
  onStep(outcome: Outcome): void;
}
