import { Models } from '@concierge/model/openai';
import { resolveProviders } from '@concierge/model';
import { ProvidersFile } from '@concierge/contract';
const [url='',n='3000',c='64']=process.argv.slice(2);const N=+n,C=+c;
const models=new Models({providers:resolveProviders(ProvidersFile.parse({default:'t/m',providers:{t:{baseUrl:url,apiKey:'k',models:{m:{}}}}}),()=>undefined)});
const model=models.forRef();const signal=new AbortController().signal;let events=0;
async function one(){for await(const e of model.stream({system:'You are.',messages:[{role:'user',content:'hello '.repeat(200)}],tools:[]},signal))if(e.type==='text')events++}
async function run(k:number){let left=k;await Promise.all(Array.from({length:C},async()=>{while(left-->0)await one()}))}
await run(500);events=0;
const c0=process.cpuUsage(),t0=performance.now();await run(N);const u=process.cpuUsage(c0);
console.log('adapter turns/s',(N/(performance.now()-t0)*1000).toFixed(0),'cpu s/1000',((u.user+u.system)/1e6/N*1000).toFixed(3),'text events/turn',(events/N).toFixed(1));
models.close();
