import t from 'tap';
import { stringify } from 'yaml';
import { Appliance, CONFIG, STATE, UNIT } from './support/appliance.ts';
import { EventReader } from '../support/events.ts';
t.setTimeout(500000);
t.test('x', {timeout: 500000}, async (t) => {
const config = (w: number) => ({publish_frequency: 20, thresholds: { memory: { warning:w, critical: 99.9 } }, alerts: { raise_after_seconds: 0, clear_after_seconds: 0, hysteresis_percent: 0 }});
const a = await Appliance.boot(t, {suite: 'trixie', config: config(99.8), disk: { path: STATE, megabytes: 48 }});
const m = a.machine;
const seen = new Map<string, boolean>();
for (let cycle = 0; cycle < 14; cycle++) {
  const ev = await EventReader.open(await m.url());
  const end = Date.now() + 1500 + Math.random()*2500;
  let w = 0.1;
  while (Date.now() < end) { await m.write(CONFIG, stringify(config(w))); w = w === 0.1 ? 99.8 : 0.1; await m.run(['systemctl','kill','-s','HUP','--kill-whom=main',UNIT]); await new Promise(r=>setTimeout(r,150)); }
  await m.cutPower();
  await new Promise(r=>setTimeout(r,100));
  for (const al of ev.alerts()) if (al.metric==='memory_percent') seen.set(`${al.alert_id} ${al.resolved}`, true);
  ev.close();
  await m.bootAgain(); await a.measures();
  const {data} = await m.json<any>('/alerts?changes=true&metric=memory_percent&hours=1&limit=10000');
  const have = new Set(data.map((x: any)=>`${x.alert_id} ${x.resolved}`));
  const lost = [...seen.keys()].filter(k=>!have.has(k));
  const st = await a.status();
  console.error(cycle, 'seen', seen.size, 'stored', have.size, 'lost', lost, 'set aside', st.storage.set_aside, st.storage.state, (await a.history()).length);
}
await a.storeIsWhole(t);
});
