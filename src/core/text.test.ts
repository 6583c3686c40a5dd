import t from 'tap';
import { withoutUrlPaths } from './text.ts';

t.test('of URLs in a text scheme and host are left', async (t) => {
  t.equal(withoutUrlPaths('to https://a.example:8443/b/c?d#e, then'), 'to https://a.example:8443/… then');
  t.equal(withoutUrlPaths('"https://user:word@a.example" and http://[::1]:5000'), '"https://a.example" and http://[::1]:5000');
  t.equal(withoutUrlPaths('https://a.example?key=1'), 'https://a.example/…');
  t.equal(withoutUrlPaths('no address: /etc/edge-health//x'), 'no address: /etc/edge-health//x');
});
