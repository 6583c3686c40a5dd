import t from 'tap';
import { MAX_RETRY_AFTER_MS, outcomeOf, retryAfterMs } from './webhook.ts';

const NOW = Date.parse('2026-03-04T05:06:07Z');
const answer = (status: number, more: object = {}) =>
  outcomeOf({ status, retryAfter: undefined, location: undefined, text: '', ...more }, NOW);

t.test('a response means delivered, retry or final failure', async (t) => {
  for (const status of [200, 201, 202, 204]) t.equal(answer(status).kind, 'delivered', `${status}`);
  for (const status of [408, 425, 429, 500, 502, 503, 504]) t.equal(answer(status).kind, 'retry', `${status}`);
  for (const status of [400, 401, 403, 404, 410, 413, 422]) t.equal(answer(status).kind, 'final', `${status}`);
  t.match(answer(301, { location: 'https://new.example/secret/path' }), {
    kind: 'final',
    detail: /set ops\.notify\.webhook\.url or url_file to the new address at https:\/\/new\.example$/,
  });
  t.match(answer(302, { location: '/relative' }), { kind: 'final' });
  t.match(answer(400, { text: 'no such channel' }), { detail: 'answered 400: no such channel; check ops.notify.webhook' });
});

t.test('parses Retry-After in seconds and as a date, with an upper limit', async (t) => {
  t.same(answer(429, { retryAfter: '120' }), { kind: 'retry', detail: 'answered 429', afterMs: 120_000 });
  t.equal(retryAfterMs('Wed, 04 Mar 2026 05:07:07 GMT', NOW), 60_000);
  t.equal(retryAfterMs('Wed, 04 Mar 2020 05:07:07 GMT', NOW), 0);
  t.equal(retryAfterMs('999999999', NOW), MAX_RETRY_AFTER_MS);
  t.equal(retryAfterMs('soon', NOW), null);
  t.equal(retryAfterMs(undefined, NOW), null);
});
