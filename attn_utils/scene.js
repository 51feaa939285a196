(function(){
var root=document.documentElement.dataset.content_root;
if(root===undefined||!('IntersectionObserver' in window))return;
function library(){
window.abePlotly=window.abePlotly||new Promise(function(done,fail){
var tag=document.createElement('script');tag.src=root+'_static/plotly/plotly.min.js';
tag.onload=done;tag.onerror=fail;document.head.appendChild(tag);});
return window.abePlotly;}
document.querySelectorAll('[id="ID"]:not([data-ready])').forEach(function(box){
box.dataset.ready='1';
var still=box.querySelector('.abe-still'),scene=box.querySelector('.abe-scene'),hint=box.querySelector('p');
var data=JSON.parse(box.querySelector('script[type="application/json"]').textContent);
var seen=new IntersectionObserver(function(entries){
if(!entries.some(function(e){return e.isIntersecting;}))return;
seen.disconnect();
library().then(function(){
scene.hidden=false;
return Plotly.newPlot(scene,data.data,data.layout,
{responsive:true,displaylogo:false,displayModeBar:false,scrollZoom:false});
}).then(function(){still.hidden=true;hint.hidden=false;}).catch(function(){scene.hidden=true;still.hidden=false;});
});
seen.observe(box);
});
})();
