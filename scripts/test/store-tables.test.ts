import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { COMPARISONS, storesWithoutRow, withStoreTables } from '../checks/documents/store-tables.ts';
import { STORES } from '../checks/documents/stores.ts';
import { root } from '../launcher/root.mjs';

const read = (file: string): string => readFileSync(join(root, file), 'utf8');
const facts = { matrix: read('docs/compatibility.md'), support: read('docs/support.md') };
const written = (document: string, file = 'docs/page.md'): string => withStoreTables(document, file, facts);
const tableOf = (columns: string, file?: string): string =>
  written(`<!-- stores: ${columns} -->\n<!-- end -->`, file);

describe.each(COMPARISONS)('%s', (file) => {
  const page = read(file);

  it('has every store, and the check fails for each that is missing', () => {
    expect(written(page, file)).toBe(page);
    for (const { name } of STORES) {
      const planted = page.replace(/(?<=<!-- stores: )[^]*?(?=<!-- end -->)/, (table) =>
        table.replace(new RegExp(String.raw`\[${name}\]\([^)]*\)( · )?`), ''),
      );
      expect(planted).not.toBe(page);
      expect(written(planted, file)).toBe(page);
    }
  });

  it('may not do without its table', () => {
    expect(() => written(page.replace('<!-- stores: ', '<!-- '), file)).toThrow(
      `${file} compares stores, and has no table of them`,
    );
  });
});

describe('the table of stores', () => {
  it('has a row for each backend of the matrix and each store of docs/support.md', () => {
    expect(storesWithoutRow(facts)).toEqual([]);
    const others = STORES.filter(({ name }) => !['NATS', 'Upstash', 'Kubernetes'].includes(name));
    expect(storesWithoutRow(facts, others)).toEqual([
      'nats',
      'nats-cluster',
      'upstash',
      'NATS',
      'Kubernetes',
      'Upstash',
    ]);
  });

  it('tells what the backends declare, and tokens that only an option gives', () => {
    const table = tableOf('tenure, order, tokens, modes');
    expect(table).toMatch(/^\| \[ZooKeeper\].* \| session \| fifo \| durable \| exclusive, shared \|$/m);
    expect(table).toMatch(/^\| .*\[NATS\].* \| lease \| fifo \| durable \| all \|$/m);
    expect(table).toMatch(
      /^\| \[Redisson\].* \| lease \| none \| none; volatile with `fencing` \| exclusive \|$/m,
    );
  });

  it('tells on what a store was tried, and where that was something else', () => {
    const table = tableOf('tested on');
    expect(table).toMatch(/^\| \[Redis, Valkey\].* \| Redis 6\.2 to 8\.6, Valkey 8 to 9 \|$/m);
    expect(table).toMatch(/^\| \[DynamoDB\].* \| DynamoDB Local 3\.3, a stand-in \|$/m);
    expect(table).toMatch(/^\| \[Upstash\].* \| a bridge before Redis, a stand-in \|$/m);
    expect(table).toMatch(/^\| \[Kubernetes\].* \| Kubernetes 1\.34, by hand \|$/m);
    expect(table).toMatch(/^\| \[quorum\].* \| Redis 7\.0 \|$/m);
  });

  it('tells the margin of the clock of a store', () => {
    const table = tableOf('free after a crash');
    expect(table).toMatch(/^\| \[DynamoDB\].* · \[S3\].* · \[Kubernetes\].* \| ttl \+ 4 s \|$/m);
    expect(table).toMatch(/^\| \[MongoDB\].* \| ttl \+ 10 s \|$/m);
  });

  it('links from where it stands', () => {
    expect(tableOf('order', 'README.md')).toContain('[etcd](docs/backends/etcd.md)');
    expect(tableOf('order', 'docs/guides/fencing.md')).toContain('[etcd](../backends/etcd.md)');
  });

  it('refuses a column that does not exist, and a store that the matrix does not have', () => {
    expect(() => tableOf('price')).toThrow('no column of stores is "price"');
    const matrix = facts.matrix.replaceAll(/^\| sqlite \|.*$/gm, '');
    expect(() =>
      withStoreTables('<!-- stores: order -->\n<!-- end -->', 'docs/page.md', { ...facts, matrix }),
    ).toThrow('docs/compatibility.md has no order of SQLite');
  });
});
